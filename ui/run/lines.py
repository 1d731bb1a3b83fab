"""What a program writes to a terminal, as plain lines: no colours, no cursor movements, bounded."""

from __future__ import annotations

import codecs
import re
from collections import deque

LAST = 12
"""How many of its last lines are kept for whoever asks why it ended."""
_LONGEST = 4096
_MOST_PENDING = 1 << 16
# CSI and OSC sequences, and the short escapes; what is left of control characters afterwards.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Lines:
    """Bytes in, lines out. `count` is how many there were, `last` the last few of them."""

    def __init__(self) -> None:
        self.count = 0
        self.last: deque[str] = deque(maxlen=LAST)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""

    def feed(self, data: bytes) -> list[str]:
        """The lines that are whole now. What is not UTF-8 shows as a replacement character."""
        *whole, self._pending = (self._pending + self._decoder.decode(data)).split("\n")
        if len(self._pending) > _MOST_PENDING:
            whole.append(self._pending)
            self._pending = ""
        return self._keep(whole)

    def finish(self) -> list[str]:
        """What is left when nothing more comes."""
        rest = self._pending + self._decoder.decode(b"", final=True)
        self._pending = ""
        return self._keep([rest] if rest else [])

    def _keep(self, raw: list[str]) -> list[str]:
        lines = [plain(line) for line in raw]
        self.count += len(lines)
        self.last.extend(line for line in lines if line)
        return lines


def plain(line: str) -> str:
    """A line as a terminal would leave it: without escapes, of what was overwritten only the end, not too long."""
    line = _ESCAPES.sub("", line).rstrip("\r")
    line = line.rpartition("\r")[2] or line.replace("\r", "")
    line = _CONTROLS.sub("", line.expandtabs())
    more = len(line) - _LONGEST
    return line if more <= 0 else f"{line[:_LONGEST]} … ({more:,} more characters)"
