"""What the window asks its pool to read: a trace, or a recording that goes on, with the configuration put beside it.

Imports stand in the functions: they are slow, and a worker has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspector.configuration.settings import Configuration
    from inspector.readers.recording.follow import Following
    from inspector.trace.trace import Trace


@dataclass(frozen=True)
class Found:
    """What was at the paths: a trace, a recording that goes on, or None of both; `joined` is what files of
    configuration among them say."""

    trace: Trace | Following | None
    joined: Configuration


def read(*paths: str, report: Any) -> Found:
    """What is at the paths, several being the ranks of one job. Raises what `inspector.readers.open_trace` raises."""
    from inspector.picture.tracks import Tracks
    from inspector.readers import apart, open_trace
    from inspector.readers.reader import Progress
    from inspector.trace import lock
    from inspector.trace.work import Work

    traces, joined = apart(*paths)
    if not traces:
        return Found(None, joined)
    if len(traces) == 1 and lock.is_held(traces[0]):
        return Found(_following(traces[0]), joined)
    trace = open_trace(*traces, report=report).configured(joined)
    report(Progress("arranging", rows=trace.num_work()))
    # The GUI thread needs these two at once: they are built where waiting shows as progress.
    trace.index(Work)
    trace.index(Tracks)
    return Found(trace, joined)


def follow(path: str, report: Any) -> Found:
    """The recording that is being made in the folder `path`. Raises Unreadable."""
    from inspector.configuration.settings import Configuration

    return Found(_following(Path(path)), Configuration())


def _following(path: Path) -> Following:
    from inspector.readers.recording.follow import Following

    return Following(path)
