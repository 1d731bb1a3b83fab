"""What the workload writes, as it comes."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontDatabase
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from inspector import units
from ui.theme import Theme

KEPT = 5000


class Output(QWidget):
    """The last KEPT lines. It follows the newest one as long as that is in sight. `note`, which stands elsewhere, tells
    of those that are not kept.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._count = 0
        self.note = QLabel()
        self.note.setObjectName("small")
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setMaximumBlockCount(KEPT)
        self.text.setUndoRedoEnabled(False)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setObjectName("output")
        self.text.setAccessibleName("Output")
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.text)
        self.retheme()

    def clear(self) -> None:
        """Begin anew."""
        self._count = 0
        self.text.clear()
        self.note.clear()

    def add(self, lines: Sequence[str]) -> None:
        """Append lines; of more than are kept only the last."""
        self._count += len(lines)
        bar = self.text.verticalScrollBar()
        follows = bar.value() >= bar.maximum() - 1
        self.text.appendPlainText("\n".join(lines[-KEPT:]))
        if follows:
            bar.setValue(bar.maximum())
        said = f"the last {KEPT:,} of {units.count(self._count)} lines" if self._count > KEPT else ""
        self.note.setText(said)

    def retheme(self) -> None:
        """Type of equal width, as large as the rest."""
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setPixelSize(self._theme.font("small").pixelSize())
        self.text.setFont(font)
