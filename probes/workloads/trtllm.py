"""TensorRT-LLM as a workload: its command line with the options without which it keeps no statistics.

By default it counts nothing: /metrics, /perf_metrics and /kv_cache_events of its server stay empty. What is added lies
in a file of extra options inside the recording, is said before it is used, and changes nothing that the user has set.
Written from the sources of releases 1.0 to 1.2 and of later ones; no real one has been launched yet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from shutil import which

from inspector.errors import InspectorError
from probes.workloads import command_lines, extra_options
from probes.workloads.command_lines import Program
from probes.workloads.extra_options import Options, Wanted

FILE = "extra_llm_api_options.yaml"
_OPTION = "--extra_llm_api_options"
_SPELLINGS = (_OPTION, "--config")
_FRACTIONS = ("--kv_cache_free_gpu_memory_fraction", "--free_gpu_memory_fraction")
_STEPS = Wanted(("enable_iter_perf_stats",), True, "statistics per iteration")
_TIMES = Wanted(("return_perf_metrics",), True, "times per request, and Prometheus")
_LIMIT = Wanted(("perf_metrics_max_requests",), 10_000, "times per request at /perf_metrics")
_EVENTS = Wanted(("kv_cache_config", "event_buffer_max_size"), 65_536, "KV page events")
_REUSE = Wanted(("kv_cache_config", "enable_block_reuse"), True, "KV page events, which come with reuse only")
# Under `trtllm-bench` and `trtllm-eval` nobody asks the server that is not there, and reuse would change the figure.
_WANTED: dict[str, tuple[Wanted, ...]] = {
    "serve": (_STEPS, _TIMES, _LIMIT, _EVENTS, _REUSE),
    "bench": (_STEPS,),
    "eval": (_STEPS,),
}
# Sub-commands that take the file; `trtllm-serve MODEL` is `trtllm-serve serve MODEL`.
_OTHER_SERVE = ("disaggregated", "disaggregated_mpi_worker", "mm_embedding_serve")
_BENCH = ("throughput", "latency")
# Its arguments know these only where they are those of the PyTorch executor.
_PYTORCH_ONLY = (_STEPS, _LIMIT)
_FIELD = re.compile(r"^    ([a-z][a-z0-9_]*) *:", re.MULTILINE)


@dataclass(frozen=True)
class Prepared:
    """The command line to run, what has to be said of it, a line each, and the options that were added."""

    command: list[str]
    told: list[str] = field(default_factory=list)
    added: dict[str, str] = field(default_factory=dict)


def prepare(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Prepared:
    """`command` with what statistics need, in a new file in `folder`; unchanged when it is no TensorRT-LLM program.

    The options of a Python script that uses TensorRT-LLM are its own. Raises Unreadable and Missing for the user's
    file of options, InspectorError when ours cannot be written.
    """
    words = list(command)
    found = command_lines.program(words)
    if found is None:
        if command_lines.mentions(words):
            return Prepared(words, ["no trtllm-serve or trtllm-bench to be seen in the command: its options stay"])
        return Prepared(words)
    arguments = words[found.at + 1 : found.end]
    if not _takes_file(found, arguments):
        return Prepared(words, [f"this part of trtllm-{found.name} takes no extra options: they stay as they are"])
    given = command_lines.option(arguments, _SPELLINGS)
    user = extra_options.read(Path(given[1])) if given else {}
    wanted, told = _possible(found, words, arguments, environment)
    wanted = _set_elsewhere(wanted, arguments, told)
    merged, added, otherwise = extra_options.lay_under(user, _carried(wanted, user, arguments))
    for one, value in otherwise:
        told.append(f"yours is kept: {_shown(one, value)}" + ("" if value else f", so no {one.brings}"))
    if not added:
        return Prepared(words, told)
    path = folder / FILE
    base = f"those of {given[1]}, and" if given else "added:"
    told = [
        f"trtllm-{found.name} runs with the options in {path}: {base}",
        *(f"  {_shown(one, one.value)}  ({one.brings})" for one in added),
        *told,
    ]
    _write(path, merged, told)
    settings = {one.name: json.dumps(one.value) for one in added}
    return Prepared(_with_file(words, found, given, path), told, settings)


def _takes_file(found: Program, arguments: Sequence[str]) -> bool:
    if found.name == "serve":
        return next(iter(arguments), "") not in _OTHER_SERVE
    return found.name != "bench" or any(word in _BENCH for word in arguments)


def _possible(
    found: Program, words: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[Wanted], list[str]]:
    """What is wanted of this program and known to its release, which refuses to start with any other name."""
    wanted, told = list(_WANTED[found.name]), []
    backend = command_lines.option(arguments, ("--backend",))
    if backend is not None and backend[1] in ("tensorrt", "trt"):
        wanted = [one for one in wanted if one not in _PYTORCH_ONLY]
    fields = known_fields(words[found.runs], environment)
    if fields is not None:
        unknown = [one for one in wanted if one.path[-1] not in fields]
        told = [f"this TensorRT-LLM has no {one.name}: it goes without {one.brings}" for one in unknown]
        wanted = [one for one in wanted if one not in unknown]
    return wanted, told


def _set_elsewhere(wanted: list[Wanted], arguments: Sequence[str], told: list[str]) -> list[Wanted]:
    """Without what the command line sets by --set PATH=VALUE, which wins over any file."""
    left = []
    for one in wanted:
        ways = [".".join(one.path[:length]) for length in range(1, len(one.path) + 1)]
        said = [word for word in _all_of(arguments, "--set") if word.split("=", 1)[0] in ways]
        if said:
            told.append(f"yours is kept: --set {said[-1]}")
        else:
            left.append(one)
    return left


def _all_of(arguments: Sequence[str], name: str) -> list[str]:
    following = [after for word, after in pairwise(arguments) if word == name]
    return following + [word.split("=", 1)[1] for word in arguments if word.startswith(f"{name}=")]


def _carried(wanted: list[Wanted], user: Options, arguments: Sequence[str]) -> list[Wanted]:
    """With the memory share of the command line, where a group of ours would hide it: in releases up to 1.2 the whole
    group of a file replaces what the command line says of it.
    """
    fraction = command_lines.option(arguments, _FRACTIONS)
    ours = any(one.path[0] == "kv_cache_config" for one in wanted)
    if fraction is None or not ours or "kv_cache_config" in user:
        return wanted
    try:
        share = float(fraction[1])
    except ValueError:
        return wanted
    return [*wanted, Wanted(("kv_cache_config", "free_gpu_memory_fraction"), share, "as on the command line")]


def known_fields(executed: str, environment: Mapping[str, str]) -> frozenset[str] | None:
    """Names of the arguments that the TensorRT-LLM beside a program knows; None where it is not found.

    Its source is searched as text, nothing of it is imported.
    """
    place = which(executed, path=environment.get("PATH"))
    if place is None:
        return None
    for folder in (Path(place).parent.parent, Path(place).resolve().parent.parent):
        for kind in ("site-packages", "dist-packages"):
            for path in sorted(folder.glob(f"lib/python3*/{kind}/tensorrt_llm/llmapi/llm_args.py")):
                names = frozenset(_FIELD.findall(path.read_text(encoding="utf-8", errors="replace")))
                # Of a release that keeps them elsewhere nothing is known.
                if "enable_block_reuse" in names:
                    return names
    return None


def _with_file(words: list[str], found: Program, given: tuple[int, str] | None, path: Path) -> list[str]:
    if given is not None:
        place = found.at + 1 + given[0]
        spelled, has_value, _ = words[place].partition("=")
        ours = [f"{spelled}={path}"] if has_value else [spelled, str(path)]
        return [*words[:place], *ours, *words[place + len(ours) :]]
    arguments = words[found.at + 1 : found.end]
    end = found.at + 1 + arguments.index("--") if "--" in arguments else found.end
    if found.name == "eval":
        # Its options stand before the task that it evaluates.
        end = found.at + 1
    return [*words[:end], _OPTION, str(path), *words[end:]]


def _shown(one: Wanted, value: object) -> str:
    return f"{one.name}: {json.dumps(value, default=str)}"


def _write(path: Path, options: Options, told: Sequence[str]) -> None:
    try:
        extra_options.write(path, options, told)
    except OSError as error:
        do = "record where there is room, or leave the command as it is with --keep-options"
        raise InspectorError(f"cannot write {path}", error.strerror or str(error), do) from error
