"""The strips above the schedule: requests in the batch, tokens against the budget, and who waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from inspector.picture.palette import ink
from inspector.picture.schedule import Strips
from ui.inks import color_of
from ui.raster import paint as paint_pixels
from ui.theme import Theme

Int = npt.NDArray[np.int64]

# The engine counts its queue once per iteration. Whoever came and was taken in between is in no count, but did wait.
NOBODY_LEFT = "nobody was left over at any iteration; waiting for the next one is in Queue wait"


@dataclass(frozen=True)
class Strip:
    """One strip: `layers` are (values, ink) painted over each other, the largest first; `limit` is drawn as a line.

    `empty` is said in a strip that has nothing to draw.
    """

    title: str
    layers: Sequence[tuple[Int, int]]
    limit: Int | None
    top: int
    empty: str = ""


def strips_of(found: Strips) -> list[Strip]:
    """Those that the trace has numbers for."""
    context, generation = ink("context chunk"), ink("generation")
    strips = []
    if (found.batch >= 0).any() or found.highest_batch:
        layers = [(found.batch, generation), (found.context, context)]
        strips.append(Strip("Batch", layers, found.room, found.highest_batch))
    if found.highest_tokens:
        layers = [(found.tokens, generation), (found.context_tokens, context)]
        strips.append(Strip("Token budget", layers, found.budget, found.highest_tokens))
    if (found.queued >= 0).any():
        layers = [(found.queued + np.maximum(found.paused, 0), ink("paused")), (found.queued, ink("queued"))]
        empty = "" if found.highest_queue or (found.paused > 0).any() else NOBODY_LEFT
        strips.append(Strip("Queue", layers, None, found.highest_queue, empty))
    return strips


def paint_strip(painter: QPainter, rect: QRectF, strip: Strip, theme: Theme) -> None:
    """Bars per column."""
    tall = max(round(rect.height()), 1)
    scale = (rect.height() - 1) / max(strip.top, 1)
    paint_pixels(painter, rect, _image(strip, tall, scale, theme))
    if strip.limit is not None:
        _limit(painter, rect, strip.limit, scale, theme)
    painter.setPen(QPen(theme.color("line"), 1))
    painter.drawLine(rect.bottomLeft(), rect.bottomRight())
    if strip.empty:
        painter.setFont(theme.font("small"))
        painter.setPen(theme.color("muted"))
        painter.drawText(rect.adjusted(theme.px(8), 0, 0, 0), int(Qt.AlignmentFlag.AlignVCenter), strip.empty)


def paint_label(painter: QPainter, label: QRectF, strip: Strip, theme: Theme) -> None:
    """Its name, and the top of its scale."""
    painter.setFont(theme.font("small"))
    painter.setPen(theme.color("text"))
    painter.drawText(label, int(Qt.AlignmentFlag.AlignVCenter), strip.title)
    if not strip.empty:
        painter.setPen(theme.color("muted"))
        corner = int(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight)
        painter.drawText(label, corner, f"{strip.top:,}")


def _image(strip: Strip, tall: int, scale: float, theme: Theme) -> npt.NDArray[np.uint32]:
    """Bars of every column as pixels; what is more than nothing is at least one tall."""
    level = np.arange(tall, 0, -1)[:, None]
    image = np.full((tall, len(strip.layers[0][0])), theme.color("raised").rgb(), np.uint32)
    for values, number in strip.layers:
        height = np.where(values > 0, np.maximum(np.round(values * scale), 1), 0)
        image[level <= height[None, :]] = color_of(number, theme).rgb()
    return image


def _limit(painter: QPainter, rect: QRectF, values: Int, scale: float, theme: Theme) -> None:
    """A dashed line at what the iteration may hold."""
    known = np.flatnonzero(values > 0)
    if not len(known):
        return
    painter.setPen(QPen(theme.color("muted"), 1, Qt.PenStyle.DashLine))
    step = rect.width() / len(values)
    cuts = np.flatnonzero(np.diff(values[known]) != 0)
    firsts, lasts = np.r_[0, cuts + 1], np.r_[cuts, len(known) - 1]
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        y = round(rect.bottom() - min(int(values[known[first]]) * scale, rect.height() - 1)) + 0.5
        left, right = rect.left() + known[first] * step, rect.left() + (known[last] + 1) * step
        painter.drawLine(QLineF(left, y, right, y))
