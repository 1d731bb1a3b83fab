"""The box beside the pointer, for pictures: a title, then label and value on each line."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QToolTip, QWidget


def show_hint(widget: QWidget, place: QPoint, lines: Sequence[tuple[str, str]]) -> None:
    """Show the lines beside `place` (of the widget); none take the box away."""
    if not lines:
        QToolTip.hideText()
        return
    QToolTip.showText(widget.mapToGlobal(place), hint_text(lines), widget)


def hint_text(lines: Sequence[tuple[str, str]]) -> str:
    """As the rich text that a tool tip takes; texts of a trace are shown as they are."""
    rows = "".join(
        f"<tr><td style='padding-right: 10px'>{escape(label)}</td><td>{escape(value)}</td></tr>"
        for label, value in lines[1:]
    )
    return f"<b>{escape(lines[0][1])}</b><table cellspacing='0' cellpadding='1'>{rows}</table>"
