"""The middle of the Run view: what the workload writes, or how it is set."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from inspector.analysis.configured import Configured
from ui.run.output import Output
from ui.run.settings_sheet import SettingsSheet
from ui.theme import GRID, Theme
from ui.widgets.segments import Segments


class Middle(QWidget):
    """Of a run one of both, as chosen; of a trace that was opened, of which no output is kept, its configuration."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.output, self.sheet = Output(theme), SettingsSheet(theme)
        self.choice = Segments("Show of the run", (("output", "Output"), ("settings", "Configuration")))
        self.choice.chosen.connect(lambda _: self._show())
        self._title, self._count = QLabel("Configuration"), QLabel()
        self._count.setObjectName("small")
        self.copy = QPushButton("Copy")
        self.copy.setObjectName("link")
        self.copy.setToolTip("All settings with their files and options, for a spreadsheet")
        self.copy.setAccessibleName("Copy the configuration")
        self.copy.clicked.connect(self._copy)
        self._has_output = True
        head = QHBoxLayout()
        head.addWidget(self.choice)
        head.addWidget(self._title)
        head.addStretch(1)
        head.addWidget(self._count)
        head.addWidget(self.copy)
        head.addWidget(self.output.note)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.output)
        self._pages.addWidget(self.sheet)
        self._layout = QVBoxLayout(self)
        self._layout.setSpacing(GRID // 2)
        self._layout.addLayout(head)
        self._layout.addWidget(self._pages, 1)
        self.indent(False)
        self._show()
        self.retheme()

    @property
    def shows_settings(self) -> bool:
        """Whether the configuration is in sight."""
        return self._pages.currentIndex() == 1

    def show_output(self, on: bool) -> None:
        """Whether there is an output to choose."""
        self._has_output = on
        self._show()

    def show_configured(self, found: Configured | None) -> None:
        """How it is set; None where that is not asked yet."""
        if found is None:
            self.sheet.clear()
        else:
            self.sheet.show_configured(found)
        count = len(found.lines) if found is not None else 0
        self._count.setText(f"{count} known" if count else "")
        self._show()

    def indent(self, on: bool) -> None:
        """With room at the left, where something stands there, or without."""
        self._layout.setContentsMargins(2 * GRID if on else 0, 0, 2 * GRID, 0)

    def retheme(self) -> None:
        """Type sizes anew."""
        self._title.setFont(self._theme.font("strong"))
        self.output.retheme()
        self.sheet.retheme()

    def _show(self) -> None:
        settings = not self._has_output or self.choice.key == "settings"
        self._pages.setCurrentIndex(int(settings))
        self.choice.setVisible(self._has_output)
        self._title.setVisible(not self._has_output)
        self._count.setVisible(settings)
        self.copy.setVisible(settings and self.sheet.rows() is not None)
        self.output.note.setVisible(not settings)

    def _copy(self) -> None:
        rows = self.sheet.rows()
        if rows is not None:
            QApplication.clipboard().setText(rows.text())
