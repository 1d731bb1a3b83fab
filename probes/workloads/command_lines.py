"""Which TensorRT-LLM program a command line runs, and where in it: also behind python, mpirun and the like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

Name = Literal["serve", "bench", "eval"]
# Each takes a program and its arguments at the end of its own; what of its own looks like a program is none.
MPI = ("mpirun", "mpiexec", "orterun", "prterun")
LAUNCHERS = frozenset(
    (
        *MPI,
        *("prun", "srun", "trtllm-llmapi-launch", "env", "nice", "nohup", "numactl", "setsid", "stdbuf"),
        *("taskset", "time", "timeout", "chrt", "ionice"),
    )
)
_PROGRAMS: dict[str, Name] = {"trtllm-serve": "serve", "trtllm-bench": "bench", "trtllm-eval": "eval"}
_MODULE = "tensorrt_llm.commands."
_PYTHON = re.compile(r"(python|pypy)[0-9.]*t?")
# Options of python that take the next word.
_TAKING = ("-W", "-X", "--check-hash-based-pycs")


@dataclass(frozen=True)
class Program:
    """A program of TensorRT-LLM in a command line: the word `at` that names it, and its arguments' end (exclusive).

    `runs` is the word that is executed: the program itself, or the python before it.
    """

    name: Name
    at: int
    end: int
    runs: int


def program(words: Sequence[str]) -> Program | None:
    """The program that `words` run; None when there is none, or none that can be told for sure."""
    for place, word in enumerate(words):
        base = PurePath(word).name
        if _PYTHON.fullmatch(base):
            return _of_python(words, place)
        if base in _PROGRAMS:
            return Program(_PROGRAMS[base], place, _end(words, place), place)
        if place == 0 and base not in LAUNCHERS:
            return None
    return None


def mentions(words: Sequence[str]) -> bool:
    """Whether TensorRT-LLM stands anywhere in `words`, as in a line for a shell."""
    return any("trtllm" in word or "tensorrt_llm" in word for word in words)


def option(words: Sequence[str], names: Sequence[str]) -> tuple[int, str] | None:
    """The last `--name value` or `--name=value` of one of `names`: the word where it begins, and the value."""
    found: tuple[int, str] | None = None
    for place, word in enumerate(words):
        if word == "--":
            break
        if word in names and place + 1 < len(words):
            found = (place, words[place + 1])
        elif "=" in word and word.split("=", 1)[0] in names:
            found = (place, word.split("=", 1)[1])
    return found


def _of_python(words: Sequence[str], at: int) -> Program | None:
    place = at + 1
    while place < len(words) and words[place].startswith("-"):
        word = words[place]
        if word == "-m":
            module = words[place + 1] if place + 1 < len(words) else ""
            name = f"trtllm-{module.removeprefix(_MODULE)}" if module.startswith(_MODULE) else ""
            return Program(_PROGRAMS[name], place + 1, _end(words, place), at) if name in _PROGRAMS else None
        if word.startswith("-c"):
            return None
        place += 2 if word in _TAKING else 1
    if place < len(words) and PurePath(words[place]).name in _PROGRAMS:
        return Program(_PROGRAMS[PurePath(words[place]).name], place, _end(words, place), at)
    return None


def _end(words: Sequence[str], at: int) -> int:
    """Where the arguments of the program end: mpirun separates several programs by a colon."""
    return next((place for place in range(at, len(words)) if words[place] == ":"), len(words))
