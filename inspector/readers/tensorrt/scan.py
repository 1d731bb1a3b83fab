"""JSON piece by piece: the elements of a long list one after the other, whatever is wrong with one of them.

trtexec writes names into a profile as they are, with quotes in them, and 'nan' for a share of nothing; it may also be
stopped while it writes. One element must not cost the others. At any time no more than a window of text is held.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import BinaryIO

WINDOW = 4 << 20
# An element that is longer is none of a real engine.
LONGEST = 32 << 20
# Words and escapes that are cut are shorter.
_NEAR = 16
_BOM = "\ufeff"
_BLANK = re.compile(r"[ \t\r\n]*")
# How trtexec and the inspector begin the next element; what stands inside of one is indented.
_NEXT = re.compile(r"\n\}?[ \t]*,\s*(?=[{\"])")


class Broken(ValueError):
    """What stands here is no JSON; `is_end` when the text breaks off in it."""

    def __init__(self, why: str, is_end: bool) -> None:
        super().__init__(why)
        self.is_end = is_end


class Scan:
    """A place in the text of `file`. `done` bytes were read; `replaced` tells of text that is not UTF-8."""

    def __init__(self, file: BinaryIO, moved: Callable[[int], None] = lambda done: None) -> None:
        self._file, self._moved = file, moved
        self._decoder = json.JSONDecoder(strict=False)
        self._text, self._at = "", 0
        self._bytes = b""
        self._ended = False
        self.done = 0
        self.replaced = False
        self._fill()
        self._text = self._text.removeprefix(_BOM)

    def peek(self) -> str:
        """The next character that is not blank; '' at the end."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            self._at = blank.end() if blank is not None else self._at
            if self._at < len(self._text) or not self._fill():
                return self._text[self._at : self._at + 1]

    def take(self, sign: str) -> bool:
        """Go behind `sign` if it is next."""
        if self.peek() != sign:
            return False
        self._at += 1
        return True

    def value(self) -> object:
        """The next value, and go behind it. Raises Broken and stays."""
        self.peek()
        while True:
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise Broken("lists in lists too deep", False) from None
            except ValueError as error:
                is_cut = isinstance(error, json.JSONDecodeError) and (
                    error.pos >= len(self._text) - _NEAR or error.msg.startswith("Unterminated")
                )
                if is_cut and len(self._text) - self._at <= LONGEST and self._fill():
                    continue
                raise Broken("not JSON", is_cut and self._ended) from None
            self._at = end
            value: object = found
            return value

    def skip(self) -> tuple[str, bool]:
        """Go to where the next element seems to begin: what was skipped, cut to a window, and whether there is one."""
        skipped = ""
        while True:
            found = _NEXT.search(self._text, self._at)
            if found is not None:
                skipped += self._text[self._at : found.start() + 1][: WINDOW - len(skipped)]
                self._at = found.end()
                return skipped, True
            # The end of what is at hand may be the beginning of it.
            keep = max(self._at, len(self._text) - _NEAR) if not self._ended else len(self._text)
            skipped += self._text[self._at : keep][: WINDOW - len(skipped)]
            self._at = keep
            if self._ended or not self._fill():
                return skipped + self._text[self._at :][: WINDOW - len(skipped)], False

    def rest(self) -> str:
        """What is left of what is at hand, cut to a window, to look at."""
        return self._text[self._at : self._at + WINDOW]

    def _fill(self) -> bool:
        """Read on; false at the end of the file."""
        if self._ended:
            return False
        block = self._file.read(WINDOW)
        self._ended = not block
        self.done += len(block)
        self._moved(self.done)
        whole = self._bytes + block
        # Not amid a character: one has four bytes at most.
        end = len(whole)
        if block:
            while end and len(whole) - end < 4 and whole[end - 1] & 0xC0 == 0x80:
                end -= 1
            end -= 1 if end and whole[end - 1] >= 0xC0 else 0
        part, self._bytes = whole[:end], whole[end:]
        try:
            text = part.decode()
        except UnicodeDecodeError:
            text, self.replaced = part.decode(errors="replace"), True
        self._text, self._at = self._text[self._at :] + text, 0
        return not self._ended or bool(text)
