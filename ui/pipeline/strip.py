"""The bubble share of every iteration as a strip of bars, with the share of equal and of unequal stages as lines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from inspector.picture.palette import ink
from inspector.picture.pipeline import PipelinePicture, bubble_strip
from inspector.picture.viewport import Viewport
from ui.inks import color_of
from ui.theme import Theme

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
        shares = spans.bubble(answer.num_stages)
        for row in range(len(spans)):
            left = rect.left() + viewport.x(int(spans.start[row]))
            right = max(rect.left() + viewport.x(int(spans.end[row])), left + 1)
            if row + 1 < len(spans):
                # A gap of less than a pixel would come and go.
                following = rect.left() + viewport.x(int(spans.start[row + 1]))
                right = following if 0 < following - right < 1.5 else right
            height = float(shares[row]) * rect.height()
            box = QRectF(left, rect.bottom() - height, right - left, height)
            painter.fillRect(box, bar)
            if iteration is not None and int(spans.iteration[row]) == iteration:
                painter.setPen(QPen(theme.color("accent"), px(2)))
                painter.drawRect(QRectF(left, rect.top() + 1, right - left, rect.height() - 2))
            for values, pen in ((spans.ideal, ideal), (spans.unequal, unequal)):
                _level(painter, rect, float(values[row]), left, right, pen)
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


def _level(painter: QPainter, rect: QRectF, share: float, left: float, right: float, pen: QPen) -> None:
    if np.isfinite(share):
        y = rect.bottom() - share * rect.height()
        painter.setPen(pen)
        painter.drawLine(QPointF(left, y), QPointF(right, y))


def _levels(painter: QPainter, rect: QRectF, values: npt.NDArray[np.float64], pen: QPen) -> None:
    known = np.flatnonzero(np.isfinite(values))
    painter.setPen(pen)
    points = [QPointF(rect.left() + at, rect.bottom() - float(values[at]) * rect.height()) for at in known.tolist()]
    if points:
        painter.drawPolyline(points)


_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
