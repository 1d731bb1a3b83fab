"""Figures side by side in two lines: what each is, and below it how much, as far as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from ui.theme import Theme


@dataclass(frozen=True)
class Measure:
    """`basis` is measured, modelled, estimated or ''; `note` stands behind the value where there is room; `tip` has the
    exact figures. `short` are other titles and values for where the first do not fit, from long to short.
    """

    title: str
    value: str
    note: str = ""
    basis: str = ""
    tip: str = ""
    short: tuple[tuple[str, str], ...] = ()


class Measures(QWidget):
    """Equal columns; where one is too narrow for what it holds, as wide as each needs, if there is room for all so.

    Those that do not fit are left out from the right.
    """

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._measures: Sequence[Measure] = ()
        self.setAccessibleName(name)
        self.setMinimumHeight(self.sizeHint().height())

    def say(self, measures: Sequence[Measure]) -> None:
        """Show those."""
        self._measures = tuple(measures)
        self.setAccessibleDescription(self.text())
        self.update()

    def text(self) -> str:
        """All that it says."""
        return ", ".join(
            " ".join(part for part in (each.title, each.value, each.note, each.basis) if part)
            for each in self._measures
        )

    def sizeHint(self) -> QSize:
        """Two lines."""
        small, strong = (QFontMetricsF(self._theme.font(role)).height() for role in ("small", "strong"))
        return QSize(self._theme.px(320), round(small + strong) + self._theme.px(4))

    def retheme(self) -> None:
        """Type sizes anew."""
        self.setMinimumHeight(self.sizeHint().height())
        self.updateGeometry()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Title and basis above, value and note below."""
        painter, theme = QPainter(self), self._theme
        small, strong = theme.font("small"), theme.font("strong")
        above, below = QFontMetricsF(small), QFontMetricsF(strong)
        middle = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        for rect, each in zip(self._places(), self._measures, strict=False):
            title, value = next(
                (texts for texts in ((each.title, each.value), *each.short) if self._room(*texts) <= rect.width()),
                each.short[-1] if each.short else (each.title, each.value),
            )
            line = QRectF(rect.left(), rect.top(), rect.width(), above.height())
            painter.setFont(small)
            painter.setPen(theme.color("muted"))
            named = f"{title} · {each.basis}" if each.basis else title
            fits = above.horizontalAdvance(named) <= rect.width()
            shown = named if fits else above.elidedText(title, Qt.TextElideMode.ElideRight, rect.width())
            painter.drawText(line, middle, shown)
            line = QRectF(rect.left(), line.bottom(), rect.width(), below.height())
            painter.setFont(strong)
            painter.setPen(theme.color("text"))
            painter.drawText(line, middle, below.elidedText(value, Qt.TextElideMode.ElideRight, rect.width()))
            line.setLeft(line.left() + below.horizontalAdvance(value) + theme.px(8))
            if each.note and above.horizontalAdvance(each.note) <= line.width():
                painter.setFont(small)
                painter.setPen(theme.color("muted"))
                painter.drawText(line, middle, each.note)

    def event(self, event: QEvent) -> bool:
        """The exact figures as a tool tip."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            at = next((at for at, rect in enumerate(self._places()) if rect.contains(event.pos().toPointF())), -1)
            if at >= 0:
                each = self._measures[at]
                QToolTip.showText(event.globalPos(), each.tip or f"{each.title}: {each.value} {each.note}", self)
                return True
        return super().event(event)

    def _places(self) -> list[QRectF]:
        if not self._measures:
            return []
        least = self._theme.px(92)
        count = max(min(len(self._measures), int(self.width() // least)), 1)
        widths = [self.width() / count] * count
        needed = [self._needed(each) for each in self._measures]
        if max(needed) > widths[0] and sum(needed) <= self.width():
            rest = (self.width() - sum(needed)) / len(needed)
            widths = [each + rest for each in needed]
        lefts = [sum(widths[:at]) for at in range(len(widths))]
        return [
            QRectF(left, 0, width - self._theme.px(8), self.height()) for left, width in zip(lefts, widths, strict=True)
        ]

    def _needed(self, measure: Measure) -> float:
        """Room for title and value, in steps, so that columns do not move with every digit."""
        step = self._theme.px(8)
        return step * (ceil(self._room(measure.title, measure.value) / step) + 1)

    def _room(self, title: str, value: str) -> float:
        small, strong = (QFontMetricsF(self._theme.font(role)) for role in ("small", "strong"))
        return max(small.horizontalAdvance(title), strong.horizontalAdvance(value))
