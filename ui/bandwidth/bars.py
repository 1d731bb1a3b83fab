"""The strip of iterations: a bar for what each used of the memory, measured, and a mark for what is modelled of it.

Where nothing was measured the bars themselves are what is modelled, and hatched.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QPainter, QPen

from inspector import units
from inspector.picture.bandwidth import BandwidthPicture, value_text
from inspector.picture.palette import ink
from ui.inks import color_of
from ui.theme import Theme

_INKS = {"context": "context iteration", "generation": "generation iteration", "mixed": "mixed iteration"}
_GAP_FROM = 3
_WASH = 96


def has_bars(picture: BandwidthPicture) -> bool:
    """Whether there is anything to draw of iterations."""
    return bool(len(picture.bars.start)) and (picture.bandwidth is not None or picture.bars.top_rate > 0)


def has_marks(picture: BandwidthPicture) -> bool:
    """Whether what is modelled stands beside what was measured."""
    return picture.bandwidth is not None and bool(np.isfinite(picture.bars.least.share).any())


def paint_bars(
    painter: QPainter, rect: QRectF, picture: BandwidthPicture, x: Callable[[float], float], theme: Theme
) -> None:
    """Bars between the places that `x` gives to times."""
    bars, least = picture.bars, picture.bars.least
    measured = picture.bandwidth is not None
    shares = bars.share if measured else _modelled(picture)
    marks = least.share if has_marks(picture) else np.full(len(shares), np.nan)
    # Over bars of any colour, light and dark.
    mark, edge = QPen(theme.color("text"), theme.scale), theme.color("surface")
    for at, (start, end, share, kind) in enumerate(zip(bars.start, bars.end, shares, bars.kind, strict=True)):
        left, right = x(start), x(end)
        width = max(right - left - (1 if right - left > _GAP_FROM else 0), 1)
        if np.isfinite(share):
            height = rect.height() * min(share, 1)
            colour = color_of(ink(_INKS.get(kind, "iteration")), theme)
            place = QRectF(left, rect.bottom() - height, width, height)
            if measured:
                painter.fillRect(place, colour)
            else:
                _paint_hatched(painter, place, colour)
            if share > 1:
                paint_cut(painter, rect, left, place.right(), theme)
        if np.isfinite(marks[at]):
            y = rect.bottom() - max(rect.height() * min(marks[at], 1), 1)
            painter.fillRect(QRectF(left, y - theme.px(1.5), width, theme.px(3)), edge)
            painter.setPen(mark)
            painter.drawLine(QLineF(left, y, left + width, y))


def _paint_hatched(painter: QPainter, place: QRectF, colour: QColor) -> None:
    wash = QColor(colour)
    wash.setAlpha(_WASH)
    painter.fillRect(place, wash)
    painter.fillRect(place, QBrush(colour, Qt.BrushStyle.BDiagPattern))
    painter.setPen(QPen(colour, 1))
    painter.drawLine(place.topLeft(), place.topRight())


def paint_bar_label(painter: QPainter, label: QRectF, picture: BandwidthPicture, theme: Theme) -> None:
    """What it is, and its scale."""
    line, px = QFontMetricsF(painter.font()).height(), theme.px
    measured = picture.bandwidth is not None
    top = "100 %" if measured or picture.peak > 0 else units.rate(picture.bars.top_rate)
    painter.setPen(theme.color("text"))
    painter.drawText(label, int(Qt.AlignmentFlag.AlignTop), "Per iteration")
    painter.setPen(theme.color("muted"))
    painter.drawText(label, int(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight), top)
    if label.height() < 2 * line:
        return
    painter.drawText(label, int(Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignRight), "0")
    if measured and not has_marks(picture):
        return
    y = label.top() + line
    if measured:
        painter.setPen(QPen(theme.color("text"), theme.scale))
        painter.drawLine(QLineF(label.left(), y + line / 2, label.left() + px(12), y + line / 2))
        painter.setPen(theme.color("muted"))
    room = QRectF(label.left() + (px(16) if measured else 0), y, label.width() - px(28), line)
    text = QFontMetricsF(painter.font()).elidedText("modelled least", Qt.TextElideMode.ElideRight, room.width())
    painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), text)


def paint_cut(painter: QPainter, rect: QRectF, left: float, right: float, theme: Theme) -> None:
    """At the top of a strip, where a value goes beyond its scale: the tip has it."""
    painter.fillRect(QRectF(left, rect.top(), right - left, theme.px(3)), theme.color("wrong"))


def bar_lines(picture: BandwidthPicture, at: int) -> list[tuple[str, str]]:
    """What a bar says, exactly: a title, then label and value."""
    bars = picture.bars
    lines = [("", f"iteration {bars.number[at]:,}{f', {bars.kind[at]}' if bars.kind[at] else ''}")]
    if picture.bandwidth is not None:
        lines.append(("HBM bandwidth", f"{value_text(float(bars.share[at]) * 100, '%')} of peak, {picture.basis}"))
    lines += _least_lines(picture, at)
    if bars.of[at] > 1:
        lines.append(("", f"the highest of {bars.of[at]:,} iterations in this pixel"))
    else:
        lines.append(("duration", units.time(int(bars.end[at] - bars.start[at]))))
    return lines


def _least_lines(picture: BandwidthPicture, at: int) -> list[tuple[str, str]]:
    least, devices = picture.bars.least, picture.least.ranks
    weights, read, written = (int(each[at]) for each in (least.weights, least.read, least.written))
    if weights < 0:
        return []
    kv = f"KV {units.size(read)} read, {units.size(written)} written" if read >= 0 else "KV not known"
    together = f", {devices:,} ranks together" if devices > 1 else ""
    lines = [("modelled least", f"weights {units.size(weights)}, {kv}{together}")]
    if np.isfinite(least.rate[at]):
        rate, share = units.rate(float(least.rate[at])), float(least.share[at]) * 100
        of_peak = f", {value_text(share, '%')} of peak" if np.isfinite(share) else ""
        lines.append(("", f"{rate}{of_peak}, modelled"))
    return lines


def _modelled(picture: BandwidthPicture) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Heights of bars where nothing was measured: of the peak where that is known, else of the highest."""
    least = picture.bars.least
    return least.share if picture.peak > 0 else least.rate / max(picture.bars.top_rate, 1.0)
