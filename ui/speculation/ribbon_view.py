"""The token ribbon on the screen: tokens in the order of the output, pass after pass, lines wrapped at the edge."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame

from inspector.picture.palette import INKS, text_on
from inspector.picture.ribbon import KIND_INKS, KIND_MARKS, Pass, Ribbon, Token
from inspector.trace.schema import TOKEN_KINDS
from ui.inks import color_of, fill
from ui.theme import Theme
from ui.widgets.tip_box import paint_tip_box

_REJECTED = TOKEN_KINDS.index("rejected")


@dataclass(frozen=True)
class _Chip:
    rect: QRectF
    text: str
    token: Token
    held: Pass


_WHO_RECORDS = "the built-in engine records those of one request in four"


class RibbonView(QAbstractScrollArea):
    """Chips: colour, pattern and a mark say what became of a token; what was turned down is struck out."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._ribbon: Ribbon | None = None
        self._why = ""
        self._chips: list[_Chip] = []
        self._pointer: QPointF | None = None
        self.setAccessibleName("Token ribbon")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setMouseTracking(True)

    def show_ribbon(self, ribbon: Ribbon | None, why: str = "") -> None:
        """Show that; at its end, where it goes on. `why` there are no texts, '' where the trace does not say."""
        self._why = why
        other = self._ribbon is None or ribbon is None or ribbon.request != self._ribbon.request
        at_end = self.verticalScrollBar().value() >= self.verticalScrollBar().maximum()
        self._ribbon = ribbon
        self.setAccessibleDescription(self.words())
        self._lay_out()
        if other:
            self.verticalScrollBar().setValue(0)
        elif at_end:
            self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
        self.viewport().update()

    def words(self) -> str:
        """The output, with what was turned down in brackets."""
        if self._ribbon is None:
            return "No token texts were recorded"
        tokens = [token for each in self._ribbon.passes for token in each.tokens]
        texts = (f"[{token.text}]" if token.kind == _REJECTED else token.text for token in tokens)
        return f"request {self._ribbon.request}: {' '.join(texts)}"

    def sizeHint(self) -> QSize:
        """A few lines."""
        return QSize(self._theme.px(480), self._theme.px(120))

    def minimumSizeHint(self) -> QSize:
        """Two lines."""
        return QSize(self._theme.px(160), self._theme.px(64))

    def retheme(self) -> None:
        """Type sizes anew."""
        self._lay_out()
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lines wrap elsewhere."""
        super().resizeEvent(event)
        self._lay_out()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The chips that are in sight."""
        painter, theme = QPainter(self.viewport()), self._theme
        painter.fillRect(self.viewport().rect(), theme.color("surface"))
        painter.setFont(theme.font())
        if self._ribbon is None:
            painter.setPen(theme.color("muted"))
            flags = int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)
            text = f"No token texts in this trace: {self._why or _WHO_RECORDS}"
            painter.drawText(QRectF(self.viewport().rect()), flags, text)
            return
        shift, height = self.verticalScrollBar().value(), self.viewport().height()
        for chip in self._chips:
            rect = chip.rect.translated(0, -shift)
            if rect.bottom() >= 0 and rect.top() <= height:
                self._chip(painter, rect, chip)
        found = self._at(self._pointer) if self._pointer is not None else None
        if found is not None and self._pointer is not None:
            kind = TOKEN_KINDS[found.token.kind]
            lines = [("", repr(found.token.text)), ("token", kind), ("place in the output", str(found.token.position))]
            lines.append(("pass", f"iteration {found.held.iteration:,}, {_given(found.held)}"))
            paint_tip_box(painter, QRectF(self.viewport().rect()), self._pointer, lines, theme)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The tip follows."""
        self._pointer = event.position()
        self.viewport().update()

    def leaveEvent(self, event: object) -> None:
        """No tip."""
        self._pointer = None
        self.viewport().update()

    def _chip(self, painter: QPainter, rect: QRectF, chip: _Chip) -> None:
        theme = self._theme
        number = KIND_INKS[chip.token.kind]
        fill(painter, rect, number, theme)
        color = color_of(number, theme)
        font = QFont(theme.font())
        font.setStrikeOut(chip.token.kind == _REJECTED)
        painter.setFont(font)
        text = QColor(text_on(color.name()))
        if INKS[number].pattern != "solid":
            # Text stands on plain ground, the pattern at both ends.
            inner = rect.adjusted(theme.px(3), theme.px(1), -theme.px(3), -theme.px(1))
            painter.fillRect(inner, color)
        painter.setPen(QPen(text))
        painter.drawText(rect, int(Qt.AlignmentFlag.AlignCenter), chip.text)

    def _at(self, point: QPointF) -> _Chip | None:
        place = QPointF(point.x(), point.y() + self.verticalScrollBar().value())
        return next((chip for chip in self._chips if chip.rect.contains(place)), None)

    def _lay_out(self) -> None:
        self._chips = []
        if self._ribbon is None:
            self.verticalScrollBar().setRange(0, 0)
            return
        px, metrics = self._theme.px, QFontMetricsF(self._theme.font())
        tall, right = metrics.height() + px(4), self.viewport().width() - px(8)
        x, y = float(px(8)), float(px(6))
        for held in self._ribbon.passes:
            for token in held.tokens:
                mark = KIND_MARKS[token.kind]
                text = f"{mark} {_shown(token.text)}" if mark else _shown(token.text)
                width = metrics.horizontalAdvance(text) + px(10)
                # Words stand apart, pieces of a word together.
                x += px(4) if token.text[:1].isspace() and token is not held.tokens[0] else 0
                if x + width > right and x > px(8):
                    x, y = float(px(8)), y + tall + px(4)
                self._chips.append(_Chip(QRectF(round(x), round(y), round(width), round(tall)), text, token, held))
                x += round(width) + 1
            x += px(12)
        height = self.viewport().height()
        self.verticalScrollBar().setRange(0, max(round(y + tall + px(6)) - height, 0))
        self.verticalScrollBar().setPageStep(height)
        self.verticalScrollBar().setSingleStep(round(tall))


def _shown(text: str) -> str:
    plain = text.replace("\n", "⏎").replace("\t", "→").strip()
    return plain or "␣"


def _given(held: Pass) -> str:
    turned_down = sum(token.kind == _REJECTED for token in held.tokens)
    return f"{len(held.tokens) - turned_down} given out, {turned_down} rejected"
