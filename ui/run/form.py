"""Options of the engine as a form: all of them before it starts, the live ones while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFormLayout, QFrame, QLabel, QScrollArea, QVBoxLayout, QWidget

from ui.run.fields import Field
from ui.run.options import Option, to_argv
from ui.theme import GRID, Theme

_COLUMN = 304


class Form(QScrollArea):
    """Groups of fields, in as many columns as there is room for; without `heads` all in one column.

    `changed(name, value)` for each right value.
    """

    changed = Signal(str, object)

    def __init__(self, theme: Theme, name: str, heads: bool = True) -> None:
        super().__init__()
        self._theme, self._heads = theme, heads
        self._options: tuple[Option, ...] = ()
        self._fields: dict[str, Field] = {}
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._page = _Page(theme)
        self.setWidget(self._page)

    def set_options(self, options: Sequence[Option], values: Mapping[str, Any]) -> None:
        """Show these, with those values."""
        self._options = tuple(options)
        self._fields = {}
        groups: dict[str, list[tuple[str, QWidget]]] = {}
        page = _Page(self._theme)
        for option in options:
            field = Field(option, values.get(option.name, option.default), partial(self._said, option), page)
            self._fields[option.name] = field
            groups.setdefault(option.group if self._heads else "", []).append((option.label, field.widget))
        page.set_groups(groups)
        self._page = page
        self.setWidget(page)

    def values(self) -> dict[str, Any]:
        """What the fields say."""
        return {name: field.value() for name, field in self._fields.items()}

    def reset(self) -> None:
        """Back to the defaults."""
        for field in self._fields.values():
            field.set(field.option.default)

    def wrong(self) -> list[str]:
        """Labels of the fields whose content the engine would refuse."""
        return [field.option.label for field in self._fields.values() if not field.is_right()]

    def argv(self) -> list[str]:
        """The options of the command line that says the same."""
        return to_argv(self._options, self.values())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """More or fewer columns."""
        super().resizeEvent(event)
        self._page.arrange(self.viewport().width())

    def _said(self, option: Option) -> None:
        field = self._fields[option.name]
        if field.is_right():
            self.changed.emit(option.name, field.value())


class _Page(QWidget):
    """Groups one below the other, in columns of about equal height."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._groups: list[QWidget] = []
        self._height = 0
        self.setObjectName("panel")

    def set_groups(self, groups: Mapping[str, Sequence[tuple[str, QWidget]]]) -> None:
        px = self._theme.px
        for title, fields in groups.items():
            box = QWidget(self)
            layout = QVBoxLayout(box)
            layout.setContentsMargins(0, 0, 0, 0)
            layout.setSpacing(px(GRID // 2))
            if title:
                head = QLabel(title)
                head.setFont(self._theme.font("strong"))
                layout.addWidget(head)
            form = QFormLayout()
            form.setHorizontalSpacing(px(GRID))
            form.setVerticalSpacing(px(GRID // 2))
            form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
            form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
            for text, field in fields:
                label = QLabel(text)
                label.setObjectName("muted")
                label.setToolTip(field.toolTip())
                label.setFixedWidth(px(120))
                label.setMinimumHeight(field.sizeHint().height())
                form.addRow(label, field)
            layout.addLayout(form)
            box.show()
            self._groups.append(box)

    def arrange(self, width: int) -> None:
        """Put each group into the column that is shortest so far."""
        px = self._theme.px
        if not self._groups:
            return
        columns = max(min(width // px(_COLUMN), len(self._groups)), 1)
        across = min((width - (columns - 1) * px(3 * GRID)) // columns, px(_COLUMN + 80))
        bottoms = [0] * columns
        for group in self._groups:
            at = bottoms.index(min(bottoms))
            height = group.sizeHint().height()
            group.setGeometry(QRect(at * (across + px(3 * GRID)), bottoms[at], across, height))
            bottoms[at] += height + px(2 * GRID)
        self._height = max(bottoms)
        self.setMinimumHeight(self._height)

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(_COLUMN), self._height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.arrange(self.width())
