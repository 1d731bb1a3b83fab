"""Stacked shares: what is seen of them is painted, however large the whole of them is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication

from inspector.picture.palette import ink
from ui.inks import color_of
from ui.settings import SettingsFile
from ui.stack import paint_stack
from ui.theme import Theme

WIDTH, HEIGHT = 60, 10
BUSY = ink("page in use")


@pytest.fixture
def theme(qapp: QApplication, tmp_path: Path) -> Theme:
    return Theme(qapp, SettingsFile(tmp_path / "settings.json"))


def painted(theme: Theme, box: QRectF, shares: npt.NDArray[np.float64], clip: bool) -> list[int]:
    """The lowest line of pixels."""
    image = QImage(WIDTH, HEIGHT, QImage.Format.Format_RGB32)
    image.fill(0)
    painter = QPainter(image)
    if clip:
        painter.setClipRect(QRectF(0, 0, WIDTH, HEIGHT))
    paint_stack(painter, box, shares, (BUSY,), theme, 1.0)
    painter.end()
    return [image.pixel(x, HEIGHT - 1) & 0xFFFFFF for x in range(WIDTH)]


@pytest.mark.parametrize("clip", [False, True])
def test_of_a_box_far_wider_than_the_screen_only_what_is_seen_is_made(theme: Theme, clip: bool) -> None:
    # As wide as a whole trace of which 38 ms are looked at.
    wide = 130_957_850
    shares = np.array([[1.0, 0.0, 1.0]])
    busy, ground = color_of(BUSY, theme).rgb() & 0xFFFFFF, theme.color("sunken").rgb() & 0xFFFFFF
    seen = painted(theme, QRectF(-wide / 3 + 30, 0, wide, HEIGHT), shares, clip)
    assert ground not in seen[:28]
    assert seen[32:] == [ground] * 28
    assert painted(theme, QRectF(-wide / 2, 0, wide, HEIGHT), shares, clip) == [ground] * WIDTH
    assert busy in painted(theme, QRectF(-5, 0, wide, HEIGHT), shares, clip)
    assert painted(theme, QRectF(WIDTH + 5, 0, wide, HEIGHT), shares, clip) == [0] * WIDTH


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(left=st.integers(-200, 80), width=st.integers(1, 300), columns=st.lists(st.booleans(), min_size=1, max_size=9))
def test_each_pixel_shows_its_column(theme: Theme, left: int, width: int, columns: list[bool]) -> None:
    seen = painted(theme, QRectF(left, 0, width, HEIGHT), np.array([columns], np.float64), True)
    ground = theme.color("sunken").rgb() & 0xFFFFFF
    for x, pixel in enumerate(seen):
        if not left <= x < left + width:
            assert pixel == 0
        else:
            assert (pixel != ground) == columns[(x - left) * len(columns) // width]
