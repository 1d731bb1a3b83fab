"""The bubble share of every iteration as a strip of bars, with the share of equal and of unequal stages as lines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from inspector.picture.palette import ink
from inspector.picture.pipeline import PipelinePicture, bubble_strip
from inspector.picture.viewport import Viewport
from ui.inks import color_of
from ui.theme import Theme

Shares = npt.NDArray[np.float64]
_BARS_TO = 600  # more iterations than this become columns
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)


def paint_strip(
    painter: QPainter, rect: QRectF, answer: PipelinePicture, viewport: Viewport, iteration: int | None, theme: Theme
) -> None:
    """Paint it; the scale goes from 0 to 100 %."""
    px = theme.px
    painter.fillRect(rect, theme.color("sunken"))
    painter.setFont(theme.font("small"))
    painter.setPen(theme.color("muted"))
    scale = QRectF(0, rect.top() - px(8), rect.left() - px(6), px(16))
    painter.drawText(scale.translated(0, px(4)), _RIGHT, "100 %")
    painter.drawText(scale.translated(0, rect.height() - px(2)), _RIGHT, "0 %")
    line = painter.fontMetrics().height()
    painter.drawText(QRectF(px(4), rect.top() - px(4), rect.left(), line), _LEFT, "bubble share")
    if np.isfinite(answer.spans.ideal).any():
        _keys(painter, rect, line, theme)
    painter.save()
    painter.setClipRect(rect)
    spans = answer.spans
    bar = color_of(ink("previous stage"), theme)
    ideal, unequal = _pens(theme)
    if len(spans) <= _BARS_TO:
        left = rect.left() + (spans.start - viewport.window.start) / viewport.ns_per_px
        right = np.maximum(rect.left() + (spans.end - viewport.window.start) / viewport.ns_per_px, left + 1)
        # A gap of less than a pixel would come and go.
        following = np.append(left[1:], np.inf)
        right = np.where((following > right) & (following - right < 1.5), following, right)
        heights = spans.bubble(answer.num_stages) * rect.height()
        boxes = zip(left.tolist(), right.tolist(), heights.tolist(), strict=True)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(bar)
        painter.drawRects([QRectF(low, rect.bottom() - tall, high - low, tall) for low, high, tall in boxes])
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for row in np.flatnonzero(spans.iteration == iteration).tolist() if iteration is not None else ():
            painter.setPen(QPen(theme.color("accent"), px(2)))
            painter.drawRect(QRectF(left[row], rect.top() + 1, right[row] - left[row], rect.height() - 2))
        for values, pen in ((spans.ideal, ideal), (spans.unequal, unequal)):
            _lines(painter, rect, values, left, right, pen)
    else:
        columns = max(round(rect.width()), 1)
        strip = bubble_strip(spans, answer.num_stages, viewport.window, columns)
        pale = color_of(ink("previous stage"), theme)
        pale.setAlpha(110)
        for at in np.flatnonzero(np.isfinite(strip.high)).tolist():
            low, high = float(strip.low[at]) * rect.height(), float(strip.high[at]) * rect.height()
            painter.fillRect(QRectF(rect.left() + at, rect.bottom() - low, 1.3, low), bar)
            painter.fillRect(QRectF(rect.left() + at, rect.bottom() - high, 1.3, high - low), pale)
        for values, pen in ((strip.ideal, ideal), (strip.unequal, unequal)):
            _levels(painter, rect, values, pen)
    painter.restore()


def _keys(painter: QPainter, rect: QRectF, line: int, theme: Theme) -> None:
    """What the two lines are."""
    px = theme.px
    for number, (pen, words) in enumerate(zip(_pens(theme), ("equal stages", "as unequal as these"), strict=True), 1):
        top = rect.top() - px(4) + number * line
        painter.setPen(pen)
        painter.drawLine(QPointF(px(4), top + line / 2), QPointF(px(18), top + line / 2))
        painter.setPen(theme.color("muted"))
        room = QRectF(px(22), top, rect.left() - px(22), line)
        painter.drawText(room, _LEFT, words)


def _pens(theme: Theme) -> tuple[QPen, QPen]:
    equal = QPen(theme.color("text"), theme.px(2))
    return equal, QPen(theme.color("doubt"), theme.px(2), Qt.PenStyle.DotLine)


def _lines(painter: QPainter, rect: QRectF, shares: Shares, left: Shares, right: Shares, pen: QPen) -> None:
    known = np.isfinite(shares)
    y = rect.bottom() - shares[known] * rect.height()
    ends = zip(left[known].tolist(), right[known].tolist(), y.tolist(), strict=True)
    painter.setPen(pen)
    painter.drawLines([QLineF(low, at, high, at) for low, high, at in ends])


def _levels(painter: QPainter, rect: QRectF, values: Shares, pen: QPen) -> None:
    known = np.flatnonzero(np.isfinite(values))
    painter.setPen(pen)
    points = [QPointF(rect.left() + at, rect.bottom() - float(values[at]) * rect.height()) for at in known.tolist()]
    if points:
        painter.drawPolyline(points)


_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
