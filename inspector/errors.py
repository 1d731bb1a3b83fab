"""The errors that are the user's to act on: each says what happened, why, and what to do, in one line.

Everything else that is raised is a bug and keeps its traceback.
"""

from __future__ import annotations

from typing import ClassVar


class InspectorError(Exception):
    """An expected failure with an exit code.

    `what` happened, `why`, and what to `do`; each a phrase without a full stop. `exit_code` is the contract's.
    """

    exit_code: ClassVar[int] = 3

    def __init__(self, what: str, why: str = "", do: str = "") -> None:
        super().__init__(what, why, do)
        self.what = what
        self.why = why
        self.do = do

    def __str__(self) -> str:
        line = self.what
        if self.why:
            line += f": {self.why}"
        if self.do:
            line += f". {self.do[0].upper()}{self.do[1:]}"
        return " ".join(line.split())


class Usage(InspectorError):
    """The command was called wrongly."""

    exit_code = 2


class Unreadable(InspectorError):
    """An input that cannot be read as a trace."""

    exit_code = 3


class Missing(InspectorError):
    """Something that is needed is not on this machine."""

    exit_code = 4


class Cancelled(InspectorError):
    """The user stopped the work; nothing is to be reported."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("cancelled")
