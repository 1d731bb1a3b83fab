"""One line of text that is cut where there is no room, with all of it at hand."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QLabel, QSizePolicy

from ui.theme import Role, Theme


class Elided(QLabel):
    """`full` is the text; what stands in the label is as much of it as there is room for.

    With `smallest` the type shrinks down to that role before anything is cut.
    """

    def __init__(self, theme: Theme, role: Role = "text", smallest: Role | None = None) -> None:
        super().__init__()
        self._theme, self._role, self._smallest = theme, role, smallest
        self.full = ""
        self._shorter: tuple[str, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setTextFormat(Qt.TextFormat.PlainText)

    def set_text(self, text: str, *shorter: str) -> None:
        """Show that, as far as there is room: the first of it and `shorter` that fits, else the last one, cut."""
        self.full, self._shorter = text, shorter
        self._cut()

    def retheme(self) -> None:
        """Type sizes anew, where it has a type of its own."""
        self._cut()

    def resizeEvent(self, event: object) -> None:
        """Cut anew."""
        self._cut()

    def sizeHint(self) -> QSize:
        """As tall as its largest type, so that shrinking moves nothing."""
        return QSize(super().sizeHint().width(), self._height())

    def minimumSizeHint(self) -> QSize:
        """Any width will do."""
        return QSize(self._theme.px(40), self._height())

    def _height(self) -> int:
        metrics = self.fontMetrics() if self._smallest is None else QFontMetrics(self._theme.font(self._role))
        return metrics.height()

    def _cut(self) -> None:
        if self._smallest is not None:
            self._shrink(self._smallest)
        metrics, texts = self.fontMetrics(), (self.full, *self._shorter)
        fitting = next((text for text in texts if metrics.horizontalAdvance(text) <= self.width()), texts[-1])
        self.setText(metrics.elidedText(fitting, Qt.TextElideMode.ElideRight, self.width()))

    def _shrink(self, smallest: Role) -> None:
        font, low = self._theme.font(self._role), self._theme.font(smallest).pixelSize()
        while font.pixelSize() > low and QFontMetrics(font).horizontalAdvance(self.full) > self.width():
            font.setPixelSize(font.pixelSize() - 1)
        self.setFont(font)
