"""The configuration in sight: settings in groups side by side, each with its value and where it stands."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from inspector.analysis.configured import MODELLED, Configured, Line
from inspector.configuration.settings import BY_NAME
from ui.export import Rows
from ui.theme import Theme
from ui.widgets.elided import Elided

_COLUMN, _TITLE, _VALUE = 336, 112, 144
_NOTHING = (
    "Nothing is known of how this was set: no file, option or server said it when it was recorded. Drop a config.json, "
    "the folder of an engine or a YAML file of options here, or name it behind the trace: inflight TRACE config.json"
)
_HEADS = ("group", "setting", "value", "unit", "from", "otherwise")
Group = tuple[str, tuple[Line, ...]]


class SettingsSheet(QScrollArea):
    """As many columns as there is room for; what nobody says is named below, and is no line."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.shown: Configured | None = None
        self._columns = 0
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Configuration")

    def show_configured(self, found: Configured) -> None:
        """Lay it out, where it is not what is there already."""
        if found != self.shown:
            self.shown = found
            self._lay_out()

    def clear(self) -> None:
        """Nothing, of no trace."""
        self.shown = None
        self.setWidget(QWidget())

    def rows(self) -> Rows | None:
        """All of it, exactly; None where nothing is known."""
        if self.shown is None or not self.shown.lines:
            return None
        return Rows(
            _HEADS,
            [
                (heading, line.name, line.exact, line.unit, line.origin, line.doubt)
                for heading, line in self.shown.lines
            ],
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other columns, where there is other room."""
        super().resizeEvent(event)
        if self.shown is not None and self._fitting(self.shown) != self._columns:
            self._lay_out()

    def retheme(self) -> None:
        """Type and distances anew."""
        if self.shown is not None:
            self._lay_out()

    def _fitting(self, found: Configured) -> int:
        return max(min(self.viewport().width() // self._theme.px(_COLUMN), len(found.groups)), 1)

    def _lay_out(self) -> None:
        found, px = self.shown, self._theme.px
        if found is None:
            return
        page = QWidget()
        page.setObjectName("panel")
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, px(8), px(8))
        layout.setSpacing(px(8))
        self._columns = self._fitting(found)
        if found.groups:
            beside = QHBoxLayout()
            beside.setSpacing(px(24))
            for groups in split(found.groups, self._columns):
                beside.addLayout(self._column(groups), 1)
            layout.addLayout(beside)
            unknown = ", ".join(BY_NAME[name].title for name in found.unknown)
            if unknown:
                layout.addWidget(self._sentence(f"Said nowhere: {unknown}", "muted"))
        else:
            layout.addWidget(self._sentence(_NOTHING, "muted"))
        for note in found.notes:
            layout.addWidget(self._sentence(note, "doubt"))
        layout.addStretch(1)
        self.setWidget(page)
        self.setAccessibleDescription(", ".join(f"{line.title} {line.value}" for _, line in found.lines))

    def _column(self, groups: Sequence[Group]) -> QVBoxLayout:
        px = self._theme.px
        grid = QGridLayout()
        grid.setHorizontalSpacing(px(8))
        grid.setVerticalSpacing(px(3))
        grid.setColumnMinimumWidth(0, px(_TITLE))
        metrics = QFontMetrics(self._theme.font())
        widest = max((metrics.horizontalAdvance(line.value) for _, lines in groups for line in lines), default=0)
        grid.setColumnMinimumWidth(1, min(widest + px(2), px(_VALUE)))
        grid.setColumnStretch(2, 1)
        row = 0
        for heading, lines in groups:
            title = QLabel("Modelled, all ranks together" if heading == MODELLED else heading)
            title.setFont(self._theme.font("strong"))
            title.setContentsMargins(0, px(4) if row else 0, 0, 0)
            grid.addWidget(title, row, 0, 1, 3)
            row += 1
            for line in lines:
                row = self._line(grid, row, line)
        column = QVBoxLayout()
        column.addLayout(grid)
        column.addStretch(1)
        return column

    def _line(self, grid: QGridLayout, row: int, line: Line) -> int:
        title, value, place = QLabel(line.title), Elided(self._theme), Elided(self._theme)
        title.setObjectName("muted")
        title.setToolTip(line.meaning)
        value.set_text(line.value)
        exact = f"{line.exact:,}" if isinstance(line.exact, int) and not isinstance(line.exact, bool) else line.value
        value.setToolTip(f"{line.name}: {exact} {line.unit}".rstrip())
        place.setObjectName("small")
        place.set_text(line.where, line.where.rpartition(" in ")[2])
        place.setToolTip(line.origin)
        for label in (value, place):
            label.setAccessibleName(f"{line.title}, {label.full}")
        grid.addWidget(title, row, 0)
        grid.addWidget(value, row, 1)
        grid.addWidget(place, row, 2)
        if not line.doubt:
            return row + 1
        grid.addWidget(self._sentence(line.doubt, "doubt"), row + 1, 1, 1, 2)
        return row + 2

    def _sentence(self, text: str, style: str) -> QLabel:
        label = QLabel(text)
        label.setObjectName(style)
        label.setWordWrap(True)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return label


def split(groups: Sequence[Group], columns: int) -> list[list[Group]]:
    """Groups in their order in at most so many columns, the tallest of which is as low as can be."""
    sizes = [1 + len(lines) + sum(bool(line.doubt) for line in lines) for _, lines in groups]
    for tallest in range(max(sizes, default=0), sum(sizes) + 1):
        found: list[list[Group]] = [[]]
        room = tallest
        for group, size in zip(groups, sizes, strict=True):
            if size > room:
                found.append([])
                room = tallest
            found[-1].append(group)
            room -= size
        if len(found) <= columns:
            return found
    return [list(groups)]
