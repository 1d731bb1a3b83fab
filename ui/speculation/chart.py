"""What the small charts have in common: a title, a frame with a scale, marks of a group, and a tip at the pointer."""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from inspector.picture.palette import HUES, INKS, Ink, Pattern, ink
from inspector.picture.speculation import Group, SpeculationPicture
from ui.inks import color_of
from ui.theme import Theme
from ui.widgets.tip_box import paint_tip_box

_STYLES = (Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine, Qt.PenStyle.DotLine, Qt.PenStyle.DashDotLine)
_PATTERNS: tuple[Pattern, ...] = ("solid", "diagonals", "dots", "lines")


def shown_groups(picture: SpeculationPicture) -> tuple[Group, ...]:
    """Groups of prompts side by side; where there are none, everything."""
    if picture.groups:
        return picture.groups
    return (picture.everything,) if picture.everything is not None else ()


def group_ink(group: Group, at: int) -> Ink:
    """Colour and pattern of the `at`-th group."""
    if group.rank < 0:
        return INKS[ink("accepted")]
    hue = HUES[group.rank % len(HUES)]
    return Ink(group.name, hue.light, hue.dark, _PATTERNS[at % len(_PATTERNS)])


def line_style(at: int) -> Qt.PenStyle:
    """Dashes of the line of the `at`-th group."""
    return _STYLES[at % len(_STYLES)]


class Chart(QWidget):
    """A chart of a SpeculationPicture; subclasses paint into `area` and tell what is at a point."""

    resized = Signal()
    title = ""
    basis = ""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self.picture: SpeculationPicture | None = None
        self._pointer: QPointF | None = None
        self.setMouseTracking(True)
        self.setAccessibleName(self.title)

    def show_picture(self, picture: SpeculationPicture) -> None:
        """Paint that."""
        self.picture = picture
        self.setAccessibleDescription(self.words())
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other stretches of time fit."""
        super().resizeEvent(event)
        self.resized.emit()

    def words(self) -> str:
        """What the chart says, for who cannot see it."""
        return ""

    def headings(self) -> tuple[str, ...]:
        """What stands above it, from long to short."""
        return (f"{self.title} · {self.basis}",)

    def paint_data(self, painter: QPainter, area: QRectF, picture: SpeculationPicture) -> None:
        """Paint into `area`."""
        raise NotImplementedError

    def lines_at(self, point: QPointF, area: QRectF, picture: SpeculationPicture) -> list[tuple[str, str]]:
        """What is at a point."""
        raise NotImplementedError

    @property
    def area(self) -> QRectF:
        """Where the data are."""
        px, line = self.theme.px, QFontMetricsF(self.theme.font("small")).height()
        top = line + px(10)
        return QRectF(px(44), top, max(self.width() - px(60), 8), max(self.height() - top - line - px(10), 8))

    def sizeHint(self) -> QSize:
        """A third of the width."""
        return QSize(self.theme.px(320), self.theme.px(150))

    def minimumSizeHint(self) -> QSize:
        """Small, with two values of its scale."""
        line = round(QFontMetricsF(self.theme.font("small")).height())
        return QSize(self.theme.px(120), 4 * line + self.theme.px(20))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Heading, data, tip."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.theme.color("surface"))
        painter.setFont(self.theme.font("small"))
        painter.setPen(self.theme.color("text"))
        px = self.theme.px
        line = QRectF(px(8), px(2), self.width() - px(16), QFontMetricsF(painter.font()).height())
        metrics, headings = QFontMetricsF(painter.font()), self.headings()
        fitting = next((each for each in headings if metrics.horizontalAdvance(each) <= line.width()), headings[-1])
        shown = metrics.elidedText(fitting, Qt.TextElideMode.ElideRight, line.width())
        painter.drawText(line, int(Qt.AlignmentFlag.AlignVCenter), shown)
        if self.picture is None:
            return
        painter.save()
        self.paint_data(painter, self.area, self.picture)
        painter.restore()
        if self._pointer is not None:
            lines = self.lines_at(self._pointer, self.area, self.picture)
            paint_tip_box(painter, QRectF(self.rect()), self._pointer, lines, self.theme)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The tip follows."""
        self._pointer = event.position()
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        """No tip."""
        self._pointer = None
        self.update()

    def scale(self, painter: QPainter, area: QRectF, labels: list[tuple[float, str]]) -> None:
        """Lines across at equal shares of the height from below, with what they stand for as far as there is room."""
        metrics = QFontMetricsF(painter.font())
        apart = area.height() * (labels[1][0] - labels[0][0]) if len(labels) > 1 else area.height()
        every = max(ceil(metrics.height() / max(apart, 1)), 1)
        labels = labels[::every] if every < len(labels) else labels[-1:]
        for share, text in labels:
            y = round(area.bottom() - share * area.height()) + 0.5
            painter.setPen(QPen(self.theme.color("line"), 1))
            painter.drawLine(QLineF(area.left(), y, area.right(), y))
            painter.setPen(self.theme.color("muted"))
            room = QRectF(0, y - metrics.height() / 2, area.left() - self.theme.px(6), metrics.height())
            painter.drawText(room, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)

    def below(self, painter: QPainter, area: QRectF, x: float, text: str, width: float) -> None:
        """A label under the chart, centred at `x`."""
        height = QFontMetricsF(painter.font()).height()
        room = QRectF(x - width / 2, area.bottom() + self.theme.px(3), width, height)
        painter.setPen(self.theme.color("muted"))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignCenter), text)

    def say(self, painter: QPainter, area: QRectF, text: str) -> None:
        """A sentence instead of data."""
        painter.setPen(self.theme.color("muted"))
        flags = int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)
        painter.drawText(area, flags, text)

    def color(self, group: Group, at: int) -> QColor:
        """Colour of the `at`-th group."""
        return color_of(group_ink(group, at), self.theme)
