"""Pixels as numpy makes them, painted as one image: for cells and columns, since rectangles are slow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter


def image(pixels: npt.NDArray[np.uint32]) -> QImage:
    """(height, width) pixels, 0xffRRGGBB each, as an image that shares their memory: keep them while it lives."""
    height, width = pixels.shape
    if not pixels.flags.c_contiguous:
        raise ValueError("pixels must be contiguous")
    return QImage(pixels.data, width, height, width * 4, QImage.Format.Format_RGB32)


def paint(painter: QPainter, target: QRectF, pixels: npt.NDArray[np.uint32]) -> None:
    """Paint them into `target`; where a unit has several device pixels, give that many columns to the unit."""
    if pixels.size:
        painter.drawImage(target, image(pixels), QRectF(0, 0, pixels.shape[1], pixels.shape[0]))
