"""The options of the built-in engine, as the engine itself lists them: the window never imports it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from inspector.errors import Missing
from ui.run.launch import PROGRAM

_PATIENCE_S = 30


class Option(msgspec.Struct, frozen=True):
    """One option. `kind` mix is a mapping of names or lengths to shares; `low` and `high` are inclusive, None without
    a limit; `live` ones may change while the engine runs.
    """

    name: str
    flag: str
    kind: Literal["bool", "int", "float", "str", "mix"]
    default: Any
    group: str
    text: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    live: bool = False

    @property
    def label(self) -> str:
        """Its name for people."""
        words = self.name.replace("_len", "_length").replace("num_", "").replace("_", " ")
        return words[:1].upper() + words[1:]


def read_options() -> tuple[Option, ...]:
    """Ask the engine; raises Missing."""
    argv = [*PROGRAM, "demo", "--list-options"]
    try:
        answer = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, check=False, cwd="/"
        )
        return decode(answer.stdout)
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
        raise Missing("the built-in engine does not list its options", str(error), "see inflight doctor") from error


def decode(data: bytes) -> tuple[Option, ...]:
    """From JSON, a list of objects; unknown keys are left aside. Raises msgspec.DecodeError."""
    return msgspec.json.decode(data, type=tuple[Option, ...])


def written(option: Option, value: Any) -> str:
    """A value as the command line has it."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={share:g}" for name, share in value.items())
    return "" if value is None else str(value)


def to_argv(options: Sequence[Option], values: Mapping[str, Any]) -> list[str]:
    """Flags for those values that are not the defaults."""
    argv: list[str] = []
    for option in options:
        value = values.get(option.name, option.default)
        if value == option.default or value is None:
            continue
        if option.kind == "bool":
            argv.append(option.flag if value else f"--no-{option.flag[2:]}")
        else:
            argv += [option.flag, written(option, value)]
    return argv


def from_argv(options: Sequence[Option], argv: Sequence[str]) -> dict[str, Any]:
    """The values that a command line gives, the defaults for the others; what cannot be read stays the default."""
    values = {option.name: option.default for option in options}
    by_flag = {option.flag: option for option in options}
    words = [part for word in argv for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for at, word in enumerate(words):
        if word.startswith("--no-") and f"--{word[5:]}" in by_flag:
            values[by_flag[f"--{word[5:]}"].name] = False
        option = by_flag.get(word)
        if option is None:
            continue
        if option.kind == "bool":
            values[option.name] = True
        elif at + 1 < len(words):
            read = _READ[option.kind](words[at + 1])
            values[option.name] = option.default if read is None else read
    return values


def _number(text: str, kind: type[int] | type[float]) -> Any:
    try:
        return kind(text)
    except ValueError:
        return None


def parse_mix(text: str) -> dict[str, float] | None:
    """Shares out of 'faq=0.5,prose=0.5'; None for what is none."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, given, share = (piece.strip() for piece in part.partition("="))
        number = _number(share, float) if given else 1.0
        if not name or number is None or number < 0:
            return None
        shares[name] = number
    return shares if sum(shares.values()) > 0 else None


_READ: Mapping[str, Any] = {
    "int": lambda text: _number(text, int),
    "float": lambda text: _number(text, float),
    "str": str,
    "mix": parse_mix,
}
