"""What a turn of the wheel, or two fingers on a touchpad, mean: the same in every picture, at the same rate."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent

NOTCH = 120
"""Units of one notch of a wheel, eighths of a degree."""
_FACTOR = 1.2
_PAN_PX, _SCROLL_PX = 120, 60
_ONE_MOVEMENT_S = 0.7


@dataclass(frozen=True)
class Turn:
    """'zoom': `amount` is the factor of what is in view, below 1 for less of it; 'pan': pixels towards later times;
    'scroll': pixels down.
    """

    kind: Literal["zoom", "pan", "scroll"]
    amount: float


def read_wheel(event: QWheelEvent, scrolls: bool = True) -> Turn:
    """Ctrl zooms, by 1.2 a notch; Shift, Alt and sideways pan, by 120 pixels a notch; plain scrolls, by 60 pixels a
    notch, and pans where nothing scrolls (`scrolls` False). What tells pixels moves by just those.
    """
    fine, notches, keys = event.pixelDelta(), event.angleDelta(), event.modifiers()
    if keys & Qt.KeyboardModifier.ControlModifier:
        # Pixels of a touchpad depend on its driver, the angle that comes with them does not.
        turned = notches.y() or notches.x() or fine.y() or fine.x()
        return Turn("zoom", float(_FACTOR ** (-turned / NOTCH)))
    by_pixels = not fine.isNull()
    across, down = (fine.x(), fine.y()) if by_pixels else (notches.x(), notches.y())
    pan, scroll = (1.0, 1.0) if by_pixels else (_PAN_PX / NOTCH, _SCROLL_PX / NOTCH)
    # Some platforms turn the wheel's axis while Alt is held.
    if keys & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier):
        return Turn("pan", -(down or across) * pan)
    if abs(across) > abs(down):
        return Turn("pan", -across * pan)
    return Turn("scroll", -down * scroll) if scrolls else Turn("pan", -down * pan)


def zoom_of(scroll: Turn) -> float:
    """The factor of a zoom by as much as that scrolls, where the plain wheel zooms."""
    return float(_FACTOR ** (scroll.amount / _SCROLL_PX))


class Movement:
    """Tells the first step of a movement from those that follow at once, which going back leaves out."""

    def __init__(self) -> None:
        self._last = -_ONE_MOVEMENT_S

    def begins(self) -> bool:
        """Call it at every step."""
        now = time.monotonic()
        begins = now - self._last > _ONE_MOVEMENT_S
        self._last = now
        return begins
