"""The box beside the pointer: a title, then label and value on each line."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from ui.theme import Theme


def paint_tip_box(
    painter: QPainter, area: QRectF, pointer: QPointF, lines: Sequence[tuple[str, str]], theme: Theme
) -> None:
    """Inside `area`, beside `pointer`; the first line's two parts are the title. Nothing without lines."""
    if not lines:
        return
    strong, small = theme.font("strong"), theme.font("small")
    big, fine = QFontMetricsF(strong), QFontMetricsF(small)
    pad, gap = theme.px(8), theme.px(12)
    title = big.elidedText(" ".join(filter(None, lines[0])), Qt.TextElideMode.ElideMiddle, theme.px(420))
    names = max((fine.horizontalAdvance(name) for name, _ in lines[1:]), default=0.0)
    values = max((fine.horizontalAdvance(value) for _, value in lines[1:]), default=0.0)
    line = fine.height() + theme.px(2)
    width = max(big.horizontalAdvance(title), names + gap + values) + 2 * pad
    height = big.height() + line * (len(lines) - 1) + 2 * pad
    x, y = pointer.x() + theme.px(14), pointer.y() + theme.px(16)
    if x + width > area.right():
        x = max(pointer.x() - width - theme.px(10), area.left())
    if y + height > area.bottom():
        y = max(min(pointer.y() - theme.px(10), area.bottom()) - height, area.top())
    box = QRectF(round(x) + 0.5, round(y) + 0.5, round(width), round(height))
    painter.setPen(QPen(theme.color("edge"), 1))
    painter.setBrush(theme.color("raised"))
    painter.drawRoundedRect(box, 4, 4)
    painter.setFont(strong)
    painter.setPen(theme.color("text"))
    painter.drawText(QPointF(box.left() + pad, box.top() + pad + big.ascent()), title)
    painter.setFont(small)
    top = box.top() + pad + big.height()
    for at, (name, value) in enumerate(lines[1:]):
        base = top + at * line + fine.ascent() + theme.px(2)
        painter.setPen(theme.color("muted"))
        painter.drawText(QPointF(box.left() + pad, base), name)
        painter.setPen(theme.color("text"))
        painter.drawText(QPointF(box.left() + pad + names + gap, base), value)
