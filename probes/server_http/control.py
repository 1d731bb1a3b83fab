"""Lines of JSON on standard input, by which a window ends a recording of a server."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from probes.saying import say
from probes.server_http.words import shown

_MOST_LINE = 1 << 16
_STOP = {"stop": True}


class Control:
    """What was told. A server cannot be told anything: of all words only {"stop": true} means something here."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._begun = b""
        self.is_over = False
        """Whether the recording is to end."""

    @property
    def files(self) -> Sequence[int]:
        """What has to be waited for."""
        return () if self._file < 0 else (self._file,)

    def hear(self) -> None:
        """Read what has come. When nobody is there any more, the recording goes on."""
        data = os.read(self._file, 1 << 16)
        if not data:
            self._file = -1
        *lines, self._begun = (self._begun + (data or b"\n")).split(b"\n")
        if len(self._begun) > _MOST_LINE:
            self._begun = b""
        for line in lines:
            if not line.strip():
                continue
            try:
                told = json.loads(line)
            except (ValueError, RecursionError):
                told = None
            if told == _STOP:
                self.is_over = True
            else:
                text = shown(line.decode("utf-8", "replace").strip(), 80)
                say(f"a server cannot be told {text}: only {json.dumps(_STOP)} ends it")
