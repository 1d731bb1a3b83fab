"""One reading of the wheel for every picture."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent

from ui.widgets.wheel import NOTCH, Turn, read_wheel, zoom_of

NONE, CONTROL = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier
SHIFT, ALT = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.AltModifier
DOWN, UP, RIGHT = QPoint(0, -NOTCH), QPoint(0, NOTCH), QPoint(-NOTCH, 0)
NO_PIXELS = QPoint()


def turned(angle: QPoint, keys: Qt.KeyboardModifier, pixels: QPoint = NO_PIXELS, scrolls: bool = True) -> Turn:
    place, buttons, phase = QPointF(5, 5), Qt.MouseButton.NoButton, Qt.ScrollPhase.NoScrollPhase
    return read_wheel(QWheelEvent(place, place, pixels, angle, buttons, keys, phase, False), scrolls)


@pytest.mark.parametrize(
    ("angle", "keys", "kind", "amount"),
    [
        (DOWN, NONE, "scroll", 60),
        (UP, NONE, "scroll", -60),
        (RIGHT, NONE, "pan", 120),
        (DOWN, SHIFT, "pan", 120),
        # Some platforms turn the axis with Alt.
        (DOWN, ALT, "pan", 120),
        (RIGHT, ALT, "pan", 120),
        (UP, CONTROL, "zoom", 1 / 1.2),
        (DOWN, CONTROL, "zoom", 1.2),
    ],
)
def test_a_notch(angle: QPoint, keys: Qt.KeyboardModifier, kind: str, amount: float) -> None:
    turn = turned(angle, keys)
    assert turn.kind == kind
    assert turn.amount == pytest.approx(amount)


def test_pixels_of_a_touchpad_move_by_just_those_and_the_angle_zooms() -> None:
    assert turned(QPoint(0, -24), NONE, QPoint(0, -7)) == Turn("scroll", 7)
    assert turned(QPoint(24, 0), NONE, QPoint(9, 1)) == Turn("pan", -9)
    ten = 1.0
    for _ in range(10):
        ten *= turned(QPoint(0, 12), CONTROL, QPoint(0, 3)).amount
    assert ten == pytest.approx(turned(UP, CONTROL).amount)


def test_where_nothing_scrolls_it_pans_and_where_the_plain_wheel_zooms_it_is_by_the_same() -> None:
    assert turned(DOWN, NONE, scrolls=False) == Turn("pan", 120)
    assert zoom_of(turned(DOWN, NONE)) == pytest.approx(turned(DOWN, CONTROL).amount)
