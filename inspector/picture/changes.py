"""What the user changed while an engine ran: instants on the time axis of every picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

_DOMAIN = "engine"


@dataclass(frozen=True)
class Changes:
    """(time in ns, what), e.g. (5_000_000, 'rate = 4'), sorted by time."""

    all: tuple[tuple[int, str], ...]

    @classmethod
    def build(cls, trace: Trace) -> Changes:
        """The marks that the built-in engine makes of what it is told."""
        marks, names = trace["marks"], trace.names
        used = np.flatnonzero(np.bincount(marks["domain"] + 1)[1:]).tolist()
        domains = [domain for domain in used if names[domain] == _DOMAIN]
        rows = np.flatnonzero(np.isin(marks["domain"], domains))
        return cls(tuple((int(marks["time"][row]), names[int(marks["name"][row])]) for row in rows.tolist()))
