"""Shares of a whole, stacked column by column, as one image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from inspector.picture.palette import INKS, text_on
from ui import raster
from ui.inks import color_of
from ui.theme import Theme

_MARK = 0.16
_STEPS = {"hatch": (1, 1), "diagonals": (1, -1), "lines": (0, 1), "dots": (1, 1)}


def paint_stack(
    painter: QPainter, rect: QRectF, shares: npt.NDArray[np.floating], inks: Sequence[int], theme: Theme, ratio: float
) -> None:
    """(layers, columns) shares from below to the top of `rect`; what is left is ground. A layer has the colour of its
    ink and a quiet trace of its pattern. `ratio` device pixels are one unit. What `rect` has outside of the painter's
    clip, which is any amount after zooming in, is neither made nor painted."""
    layers, columns = shares.shape
    seen = rect.intersected(painter.clipBoundingRect() if painter.hasClipping() else QRectF(painter.window()))
    if not columns or seen.isEmpty():
        return
    height, whole = max(round(rect.height() * ratio), 1), max(round(rect.width() * ratio), 1)
    first = min(max(math.floor((seen.left() - rect.left()) * ratio), 0), whole - 1)
    width = min(max(math.ceil((seen.right() - rect.left()) * ratio), first + 1), whole) - first
    upto = np.cumsum(shares.astype(np.float64), axis=0) * height
    y = np.arange(height, 0, -1)[:, None] - 0.5
    layer = np.zeros((height, columns), np.uint8)
    for each in upto:
        layer += y > each[None, :]
    layer = layer[:, (np.arange(first, first + width) * columns) // whole]
    colours = [color_of(number, theme) for number in inks]
    marks = [_between(colour, QColor(text_on(colour.name()))) for colour in colours]
    ground = theme.color("sunken")
    packed = np.array([each.rgb() for each in (*colours, ground, *marks, ground)], np.uint32)
    step = max(round(6 * ratio), 2)
    along = _along(height, width, step)
    there = np.asarray(shares.any(axis=1))
    for number, ink in enumerate(inks):
        marks_of_ink = along.get(INKS[ink].pattern)
        if marks_of_ink is not None and there[number]:
            layer += ((layer == number) & marks_of_ink) * np.uint8(layers + 1)
    rect = QRectF(rect.left() + first / ratio, rect.top(), rect.width() * width / whole, rect.height())
    raster.paint(painter, rect, np.take(packed, layer))


@lru_cache(maxsize=8)
def _along(height: int, width: int, step: int) -> dict[str, npt.NDArray[np.bool_]]:
    """Where each pattern has its marks; kept, since a run paints the same size again and again."""
    down, across = np.arange(height)[:, None], np.arange(width)[None, :]
    return {pattern: (right * across + below * down) % step == 0 for pattern, (right, below) in _STEPS.items()}


def _between(colour: QColor, mark: QColor) -> QColor:
    parts = ((colour.red(), mark.red()), (colour.green(), mark.green()), (colour.blue(), mark.blue()))
    return QColor(*(round(low + (high - low) * _MARK) for low, high in parts))
