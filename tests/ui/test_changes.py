"""Lines in pictures where the user changed something."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from tests.ui.user import User
from ui.widgets.changes import change_at, paint_changes


def painted(user: User, changes: list[tuple[float, str]]) -> list[bool]:
    """Whether each column of 100 below the words has a line."""
    image = QImage(100, 80, QImage.Format.Format_RGB32)
    image.fill(0)
    painter = QPainter(image)
    paint_changes(painter, QRectF(10, 0, 80, 80), changes, user.window.theme)
    painter.end()
    return [any(image.pixel(x, y) & 0xFFFFFF for y in range(40, 80)) for x in range(100)]


def test_a_line_stands_where_a_change_was_and_none_outside(user: User) -> None:
    columns = painted(user, [(5.0, "before"), (30.0, "a"), (95.0, "after")])
    assert [x for x, line in enumerate(columns) if line] == [30]


def test_the_tip_tells_changes_at_the_pointer(user: User) -> None:
    changes = [(30.0, "rate = 4"), (30.4, "blocks = 9"), (60.0, "draft_len = 2")]
    assert change_at(32, changes) == [("changed", "rate = 4, blocks = 9")]
    assert change_at(45, changes) == []
