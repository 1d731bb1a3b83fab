"""A view's picture as PNG or SVG, its numbers as CSV or as tab-separated text for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from inspector.errors import InspectorError

Cell = str | int | float | None


@dataclass(frozen=True)
class Rows:
    """Numbers behind a picture: headings with their units, and rows of exact values, made as they are read."""

    heads: Sequence[str]
    rows: Iterable[Sequence[Cell]]

    def text(self, separator: str = "\t") -> str:
        """All of it, one line per row."""
        out = io.StringIO()
        writer = csv.writer(out, delimiter=separator, lineterminator="\n")
        writer.writerow(self.heads)
        writer.writerows(self.rows)
        return out.getvalue()


def write_csv(path: Path, rows: Rows) -> None:
    """Write a CSV file; raises InspectorError where it cannot be written."""
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(rows.heads)
            writer.writerows(rows.rows)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error


def write_png(path: Path, widget: QWidget) -> None:
    """Write what `widget` shows at the screen's resolution; raises InspectorError where it cannot be written."""
    if not widget.grab().save(str(path), "PNG"):
        raise _unwritable(path, "")


def write_svg(path: Path, widget: QWidget, title: str) -> None:
    """Write what `widget` paints as vectors; raises InspectorError where it cannot be written."""
    # Not needed before somebody exports.
    from PySide6.QtSvg import QSvgGenerator

    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(QSize(widget.size()))
    generator.setViewBox(QRect(widget.rect()))
    generator.setTitle(title)
    painter = QPainter()
    if not painter.begin(generator):
        raise _unwritable(path, "")
    widget.render(painter, QPoint())
    painter.end()


def _unwritable(path: Path, why: str) -> InspectorError:
    return InspectorError(f"cannot write {path}", why, "choose another place")
