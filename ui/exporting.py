"""Out of the window: files where the user says, the clipboard."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from inspector import __version__
from inspector.errors import InspectorError
from ui.export import Cell, Rows, write_csv, write_png, write_svg
from ui.views.view import View

if TYPE_CHECKING:
    from ui.window import MainWindow

# More than this does not fit on a clipboard that other programs are to read.
_MOST_COPIED = 200_000


class Exporting:
    """What the export and copy actions do for a view; what comes of it is said in the status line."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._faults: list[str] = []

    def csv(self, view: View | None) -> None:
        """Ask where to, and write the numbers."""
        rows = view.rows_for_copy() if view is not None else None
        if view is None or rows is None:
            self._say("There are no numbers to export here")
            return
        self._write(view, "csv", "CSV", lambda path: write_csv(path, rows))

    def png(self, view: View | None) -> None:
        """Ask where to, and write the picture."""
        if view is not None:
            self._write(view, "png", "PNG", lambda path: write_png(path, view.picture()))

    def svg(self, view: View | None) -> None:
        """Ask where to, and write the picture as vectors."""
        if view is not None:
            self._write(view, "svg", "SVG", lambda path: write_svg(path, view.picture(), view.TITLE))

    def copy_rows(self, view: View | None) -> None:
        """The numbers as tab-separated text."""
        rows = view.rows_for_copy() if view is not None else None
        if rows is None:
            self._say("There are no numbers to copy here")
            return
        kept: list[Sequence[Cell]] = []
        for row in rows.rows:
            if len(kept) == _MOST_COPIED:
                self._say(f"Not copied: more than {_MOST_COPIED:,} rows. Export them as CSV")
                return
            kept.append(row)
        QGuiApplication.clipboard().setText(Rows(rows.heads, kept).text())
        self._say(f"Copied {len(kept):,} rows")

    def copy_picture(self, view: View | None) -> None:
        """What the view shows."""
        if view is not None:
            QGuiApplication.clipboard().setPixmap(view.picture().grab())
            self._say(f"Copied the picture of {view.TITLE}")

    def copy_about(self) -> None:
        """Program, system and trace, for a report."""
        lines = [f"Inflight Inspector {__version__}", f"Python {platform.python_version()}, {platform.platform()}"]
        trace = self._window.session.trace
        if trace is not None:
            info = trace.info
            lines += [f"{info.kind} {info.schema_version}, {info.producer}, {info.basis}, {trace.end_ns:,} ns"]
            lines += [f"{len(table):,} {name}" for name, table in trace.tables.items() if len(table)]
            lines += [f"{note.severity}: {note.count:,} {note.code}: {note.text}" for note in trace.quality.notes]
        QGuiApplication.clipboard().setText("\n".join([*lines, *self._faults]))
        self._say("Copied the report")

    def note_fault(self, report: str) -> None:
        """Something of ours went wrong: say so, and have it in the report."""
        self._faults.append(report)
        self._say("Something went wrong in this program. Help, Copy report has what a developer needs")

    def _write(self, view: View, suffix: str, kind: str, write: Callable[[Path], None]) -> None:
        trace = self._window.session.trace
        stem = Path(trace.info.paths[0]).name.split(".")[0] if trace is not None and trace.info.paths else "trace"
        settings = self._window.host.settings
        proposed = settings.place_for(f"{stem}-{view.ID}.{suffix}")
        chosen, _ = QFileDialog.getSaveFileName(self._window, f"Export {view.TITLE} as {kind}", proposed, f"*.{suffix}")
        if not chosen:
            return
        path = Path(chosen) if Path(chosen).suffix else Path(f"{chosen}.{suffix}")
        settings.remember_place(path)
        try:
            write(path)
        except InspectorError as error:
            self._say(str(error))
        else:
            self._say(f"Wrote {path}")

    def _say(self, text: str) -> None:
        self._window.status.showMessage(text, 8000)
