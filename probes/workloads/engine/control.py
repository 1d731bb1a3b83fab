"""Changes of a run while it runs: JSON lines, one change each.

{"set": {"max_batch_size": 8, "draft": "ngram"}}    {"pause": true}    {"stop": true}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from inspector.errors import Usage
from probes.workloads.engine.options import LIVE, check

LONGEST_LINE = 1 << 16


class Lines(Protocol):
    """A binary file that is read line by line."""

    def readline(self, size: int, /) -> bytes:
        """The next line, or its next `size` bytes; empty at the end."""


@dataclass(frozen=True)
class Change:
    """What one line asks for; `pause` is None where it says nothing of it."""

    set: Mapping[str, Any] = field(default_factory=dict)
    pause: bool | None = None
    stop: bool = False


def parse(line: bytes) -> Change:
    """The change that a line asks for. Raises Usage with what is wrong; then nothing of the line holds."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Usage("a line that is no JSON", str(error)) from None
    if not isinstance(given, dict) or not given:
        raise Usage("a line that asks for nothing", 'it must be like {"set": {"rate": 4}}, {"pause": true}')
    for name in given:
        if name not in ("set", "pause", "stop"):
            raise Usage(f"a line that asks for {name!r}", "it can ask for set, pause and stop")
    settings = given.get("set", {})
    if not isinstance(settings, dict):
        raise Usage(f'{{"set": {settings!r}}}', "it must name options and values")
    for name, value in settings.items():
        check(name, value)
        if name not in LIVE:
            raise Usage(f"{name} cannot change while the engine runs", "", f"these can: {', '.join(LIVE)}")
    for name in ("pause", "stop"):
        if not isinstance(given.get(name, False), bool):
            raise Usage(f'{{"{name}": {given[name]!r}}}', "it must be true or false")
    return Change(settings, given.get("pause"), given.get("stop", False))


def follow(lines: Lines, change: Callable[[Change], None], complain: Callable[[str], None]) -> None:
    """Call `change` for each line that comes, until there are no more; a bad line is complained of and has no effect.

    Raises OSError when the lines cannot be read.
    """
    while line := lines.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            while not line.endswith(b"\n") and (line := lines.readline(LONGEST_LINE + 1)):
                pass
            complain(f"a line of more than {LONGEST_LINE} bytes is left out")
        elif line.strip():
            try:
                asked = parse(line)
            except Usage as error:
                complain(str(error))
            else:
                change(asked)
