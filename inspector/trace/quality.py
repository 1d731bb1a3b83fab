"""What is wrong with, missing from, or lost in a trace: counted notes, never silence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["info", "suspect", "loss"]

CODES: dict[str, tuple[Severity, str]] = {
    "absent": ("info", "something this export does not hold"),
    "assumed": ("info", "something that the file does not say and the reader had to assume"),
    "clock": ("suspect", "clocks that disagree"),
    "contradicted": ("suspect", "records whose end three or more later records of their stream contradict"),
    "duplicate": ("suspect", "records that came twice"),
    "encoding": ("suspect", "text that is not UTF-8"),
    "filtered": ("loss", "an export that was filtered"),
    "graph-level": ("loss", "CUDA graphs recorded as a whole: the kernels inside are not in the file"),
    "ignored": ("info", "content that is not ours to read"),
    "invalid": ("loss", "events that could not be read"),
    "outside": ("suspect", "records outside the recorded session"),
    "profiler": ("info", "what the profiler said of itself"),
    "probe": ("loss", "probes that could not record, or whose records did not come"),
    "profiler-loss": ("loss", "the profiler lost records"),
    "recovered": ("loss", "a recording that was not closed"),
    "repaired": ("suspect", "events that were read after a repair"),
    "reversed": ("suspect", "records that end before they start"),
    "simulated": ("info", "the trace was simulated, not recorded"),
    "truncated": ("loss", "a file that breaks off"),
    "unaligned": ("suspect", "files that could not be put on one clock"),
    "unclosed": ("suspect", "ranges that were never closed"),
    "unlinked": ("loss", "work without its launch call, launch calls without work, or layers without their times"),
    "unstamped": ("suspect", "records without a time stamp"),
}


@dataclass(frozen=True)
class Note:
    """`count` things of kind `code` (a key of CODES), in words, and where the one that was met first stands."""

    code: str
    count: int
    text: str
    first: str = ""

    @property
    def severity(self) -> Severity:
        """How much a figure suffers from it."""
        return CODES[self.code][0]


@dataclass
class Quality:
    """The notes of a trace in the order in which they were made; equal ones are counted together."""

    notes: list[Note] = field(default_factory=list)

    def add(self, code: str, text: str, count: int = 1, first: str = "") -> None:
        """Note `count` things. Raises KeyError for a code that is not in CODES."""
        if code not in CODES:
            raise KeyError(code)
        for row, note in enumerate(self.notes):
            if note.code == code and note.text == text:
                self.notes[row] = Note(code, note.count + count, text, note.first or first)
                return
        self.notes.append(Note(code, count, text, first))

    def count(self, code: str) -> int:
        """How many things were noted under `code`."""
        return sum(note.count for note in self.notes if note.code == code)

    def find(self, code: str) -> list[Note]:
        """The notes of that code."""
        return [note for note in self.notes if note.code == code]
