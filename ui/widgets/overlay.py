"""A panel over the window, for choosing and for looking something up; goes when one looks elsewhere."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QGraphicsDropShadowEffect, QVBoxLayout, QWidget

from ui.theme import GRID, Theme

_TALLEST = 520


class Overlay(QFrame):
    """Lies at the top middle of `window`. Esc, or the focus going elsewhere, closes it; the focus goes back."""

    def __init__(self, theme: Theme, window: QWidget) -> None:
        super().__init__(window)
        self.theme = theme
        self.widest = 680
        self._back: QWidget | None = None
        self.setObjectName("overlay")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(1, 1, 1, GRID)
        self.body.setSpacing(0)
        shadow = QGraphicsDropShadowEffect(self)
        shadow.setBlurRadius(32)
        shadow.setOffset(0, 8)
        self.setGraphicsEffect(shadow)
        self.hide()

    def open(self, first: QWidget) -> None:
        """Show it, with the focus on `first`."""
        self._back = QApplication.focusWidget()
        self.place()
        self.show()
        self.raise_()
        first.setFocus(Qt.FocusReason.PopupFocusReason)
        self.window().installEventFilter(self)
        QApplication.instance().focusChanged.connect(self._focus_moved)  # type: ignore[union-attr]

    def close_(self) -> None:
        """Hide it and give the focus back to who had it."""
        if not self.isVisible():
            return
        QApplication.instance().focusChanged.disconnect(self._focus_moved)  # type: ignore[union-attr]
        self.window().removeEventFilter(self)
        focus = QApplication.focusWidget()
        inside = focus is None or self.isAncestorOf(focus)
        self.hide()
        if inside and self._back is not None and self._back.isVisible():
            self._back.setFocus(Qt.FocusReason.PopupFocusReason)
        self._back = None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc closes."""
        if event.key() == Qt.Key.Key_Escape:
            self.close_()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay in place when the window is resized."""
        if event.type() == QEvent.Type.Resize:
            self.place()
        return False

    def wanted_height(self) -> int:
        """How tall it would be if there were room."""
        return self.theme.px(_TALLEST)

    def place(self) -> None:
        """Take the place in the window."""
        window = self.window().rect()
        width = min(self.theme.px(self.widest), window.width() - 8 * GRID)
        height = min(self.wanted_height(), self.theme.px(_TALLEST), window.height() - 12 * GRID)
        self.setGeometry((window.width() - width) // 2, 6 * GRID, width, height)

    def _focus_moved(self, old: QWidget | None, now: QWidget | None) -> None:
        if now is not None and now is not self and not self.isAncestorOf(now):
            self.close_()
