"""One line of text that is cut where there is no room, with all of it at hand."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QLabel, QSizePolicy

from ui.theme import Theme


class Elided(QLabel):
    """`full` is the text; what stands in the label is as much of it as there is room for."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.full = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setTextFormat(Qt.TextFormat.PlainText)

    def set_text(self, text: str) -> None:
        """Show that, as far as there is room."""
        self.full = text
        self._cut()

    def resizeEvent(self, event: object) -> None:
        """Cut anew."""
        self._cut()

    def minimumSizeHint(self) -> QSize:
        """Any width will do."""
        return QSize(self._theme.px(40), self.fontMetrics().height())

    def _cut(self) -> None:
        self.setText(self.fontMetrics().elidedText(self.full, Qt.TextElideMode.ElideRight, self.width()))
