"""One field for one option: what can be typed or chosen is what the engine takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractSpinBox, QCheckBox, QComboBox, QDoubleSpinBox, QLineEdit, QSpinBox, QWidget

from ui.run.options import Option, parse_mix, written

_MOST = 2**31 - 1


class Field(QObject):
    """The widget of an option. `value()` is None where what stands there is no value of it."""

    def __init__(self, option: Option, value: Any, changed: Callable[[], None], parent: QWidget) -> None:
        super().__init__(parent)
        self.option = option
        self._changed = changed
        self.widget = self._make(parent)
        self.set(value)
        self.widget.setAccessibleName(option.label)
        self.widget.setAccessibleDescription(option.text)
        self.widget.setToolTip(_tip(option))
        self._listen()

    def value(self) -> Any:
        """What it says now."""
        widget, option = self.widget, self.option
        if isinstance(widget, QCheckBox):
            return widget.isChecked()
        if isinstance(widget, QComboBox):
            return widget.currentText()
        if isinstance(widget, QSpinBox | QDoubleSpinBox):
            return widget.value()
        assert isinstance(widget, QLineEdit)
        text = widget.text().strip()
        if option.kind == "mix":
            return parse_mix(text)
        return int(text) if text.isdecimal() and len(text) < 19 else None

    def is_right(self) -> bool:
        """Whether the engine takes that."""
        value = self.value()
        if value is None:
            return self.option.default is None and isinstance(self.widget, QLineEdit) and not self.widget.text().strip()
        if isinstance(value, int | float) and not isinstance(value, bool):
            low, high = self.option.low, self.option.high
            return (low is None or value >= low) and (high is None or value <= high)
        return True

    def set(self, value: Any) -> None:
        """Show `value`, silently."""
        widget = self.widget
        blocked = widget.blockSignals(True)
        if isinstance(widget, QCheckBox):
            widget.setChecked(bool(value))
        elif isinstance(widget, QComboBox):
            widget.setCurrentText(str(value))
        elif isinstance(widget, QSpinBox):
            widget.setValue(int(value))
        elif isinstance(widget, QDoubleSpinBox):
            widget.setValue(float(value))
        elif isinstance(widget, QLineEdit):
            widget.setText(written(self.option, value))
            widget.setCursorPosition(0)
        widget.blockSignals(blocked)
        self._mark()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A wheel that scrolls the form changes no value on its way."""
        if event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus():
            event.ignore()
            return True
        return super().eventFilter(watched, event)

    def _make(self, parent: QWidget) -> QWidget:
        option = self.option
        if option.kind == "bool":
            return QCheckBox(parent)
        if option.choices:
            box = QComboBox(parent)
            box.addItems(list(option.choices))
            return self._still(box)
        if option.kind == "mix" or option.default is None:
            line = QLineEdit(parent)
            line.setPlaceholderText("off" if option.default is None else "NAME=SHARE,…")
            return line
        spin: QSpinBox | QDoubleSpinBox
        if option.kind == "int":
            spin = QSpinBox(parent)
            spin.setRange(round(_or(option.low, -_MOST)), round(min(_or(option.high, _MOST), _MOST)))
        else:
            spin = QDoubleSpinBox(parent)
            spin.setRange(_or(option.low, -1e12), _or(option.high, 1e12))
            spin.setDecimals(2)
        spin.setKeyboardTracking(False)
        spin.setStepType(QAbstractSpinBox.StepType.AdaptiveDecimalStepType if option.kind == "float" else _ONE)
        spin.setGroupSeparatorShown(True)
        if option.unit:
            spin.setSuffix(f" {option.unit}")
        # The style sheet does not reach the text of a spin box.
        spin.lineEdit().setTextMargins(spin.fontMetrics().averageCharWidth() * 5 // 6, 0, 0, 0)
        return self._still(spin)

    def _still(self, widget: QWidget) -> QWidget:
        widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        widget.installEventFilter(self)
        return widget

    def _listen(self) -> None:
        widget = self.widget
        if isinstance(widget, QCheckBox):
            widget.toggled.connect(self._said)
        elif isinstance(widget, QComboBox):
            widget.currentTextChanged.connect(self._said)
        elif isinstance(widget, QSpinBox | QDoubleSpinBox):
            widget.valueChanged.connect(self._said)
        elif isinstance(widget, QLineEdit):
            widget.textChanged.connect(self._said)

    def _said(self) -> None:
        self._mark()
        self._changed()

    def _mark(self) -> None:
        wrong = "false" if self.is_right() else "true"
        if self.widget.property("wrong") != wrong:
            self.widget.setProperty("wrong", wrong)
            self.widget.style().unpolish(self.widget)
            self.widget.style().polish(self.widget)


_ONE = QAbstractSpinBox.StepType.DefaultStepType


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _tip(option: Option) -> str:
    default = written(option, option.default) or "off"
    unit = f" {option.unit}" if option.unit else ""
    return f"{option.text[:1].upper()}{option.text[1:]}\nDefault: {default}{unit}\n{option.flag}"
