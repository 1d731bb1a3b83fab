"""What the box beside the pointer says of a place in the pipeline: labelled lines."""

from __future__ import annotations

import numpy as np

from inspector import units
from inspector.analysis.pipeline import IDLE, IDLE_EXPLANATIONS
from inspector.picture.labels import moment
from inspector.picture.pipeline import Pieces, PipelinePicture

_BETWEEN = "No stage has a pass: the engine schedules, drafts or has no requests. Idle gaps tell which it is."


def between_iterations(time: int) -> list[tuple[str, str]]:
    """Of a time in which no iteration ran."""
    return [("", "between iterations"), ("time", moment(time)), ("why", _BETWEEN)]


def of_piece(answer: PipelinePicture, pieces: Pieces, at: int) -> list[tuple[str, str]]:
    """Of a cell or a bubble."""
    kind, length = int(pieces.kind[at]), int(pieces.end[at] - pieces.start[at])
    iteration, micro = int(pieces.iteration[at]), int(pieces.micro_batch[at])
    name = answer.names[int(pieces.stage[at])]
    title = f"{name}, micro-batch {micro}" if micro >= 0 else name
    lines = [("", f"{name} idle: {IDLE[kind]}" if kind >= 0 else title), ("duration", _exact(length))]
    lines.append(("start", moment(int(pieces.start[at]))))
    if iteration >= 0:
        lines.append(("iteration", f"{iteration:,}"))
    if kind >= 0:
        if micro >= 0 and kind in (2, 4):
            lines.append(("waits for", f"micro-batch {micro}"))
        lines.append(("why", IDLE_EXPLANATIONS[IDLE[kind]]))
    elif np.isfinite(pieces.idle[at]):
        lost = float(pieces.idle[at])
        lines.append(("no processor", f"{100 * lost:.1f} % of it (wall time less processor time of the thread)"))
    return lines


def of_span(answer: PipelinePicture, row: int) -> list[tuple[str, str]]:
    """Of an iteration."""
    spans = answer.spans
    length = int(spans.end[row] - spans.start[row])
    number = int(spans.iteration[row])
    lines = [("", f"iteration {number:,}" if number >= 0 else "all of it"), ("duration", _exact(length))]
    lines.append(("bubbles", _percent(float(spans.bubble(answer.num_stages)[row]))))
    if np.isfinite(spans.ideal[row]):
        lines.append(("equal stages", _percent(float(spans.ideal[row]))))
        lines.append(("cells as unequal as these", _percent(float(spans.unequal[row]))))
        lines.append(("micro-batches", f"{int(spans.micro_batches[row]):,}"))
    return lines


def _exact(ns: int) -> str:
    return f"{units.time(ns)}   {ns:,} ns" if ns >= 1000 else units.time(ns)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
