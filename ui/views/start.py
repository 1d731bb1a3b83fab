"""The first page: what was open before, what comes along to look at, and how to open something else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from ui.settings import SettingsFile
from ui.theme import GRID, Theme
from ui.widgets.elided import Elided

_SAMPLE_SUFFIXES = (".sqlite", ".json.gz", ".json", ".inflight")
_COLUMN = 400


class Start(QWidget):
    """`wanted(paths)` when a trace is chosen, `choose()` when another is to be looked for.

    `demo()`, `launch()` and `attach()` for something live.
    """

    wanted = Signal(tuple)
    choose = Signal()
    demo = Signal()
    launch = Signal()
    attach = Signal()

    def __init__(self, theme: Theme, settings: SettingsFile) -> None:
        super().__init__()
        self._theme, self._settings = theme, settings
        self.setObjectName("start")
        self.setAccessibleName("Start")
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        outer.addWidget(self._area)
        theme.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Look again at what was open and what is there."""
        page = QWidget()
        page.setObjectName("panel")
        px = self._theme.px
        middle = QVBoxLayout()
        middle.setSpacing(px(GRID))
        middle.addLayout(self._head())
        middle.addSpacing(px(3 * GRID))
        lists = QHBoxLayout()
        lists.setSpacing(px(4 * GRID))
        recent = [tuple(paths) for paths in self._settings.values.recent if all(Path(path).exists() for path in paths)]
        gone = len(self._settings.values.recent) - len(recent)
        nothing = "Nothing yet: what you open is listed here." if not gone else "The traces opened last have gone."
        lists.addWidget(self._list("Recent", [(_title(paths), _place(paths), paths) for paths in recent], nothing), 1)
        samples = [(_name(path), _about(path), (str(path),)) for path in sample_traces()]
        if samples:
            lists.addWidget(self._list("Samples, simulated", samples, ""), 1)
        middle.addLayout(lists)
        middle.addStretch(1)
        across = QHBoxLayout(page)
        across.setContentsMargins(px(4 * GRID), px(6 * GRID), px(4 * GRID), px(4 * GRID))
        across.addStretch(1)
        body = QWidget()
        body.setLayout(middle)
        body.setMaximumWidth(px(2 * _COLUMN + 4 * GRID))
        middle.setContentsMargins(0, 0, 0, 0)
        across.addWidget(body, 6)
        across.addStretch(1)
        self._area.setWidget(page)

    def _head(self) -> QGridLayout:
        px = self._theme.px
        icon = QLabel()
        icon.setPixmap(QIcon(str(Path(__file__).parent.parent / "icon.svg")).pixmap(px(56), px(56)))
        title = QLabel("Inflight Inspector")
        title.setFont(self._theme.font("figure"))
        line = QLabel("What an inference workload does on its GPUs, and why they are idle.")
        line.setObjectName("muted")
        button = QPushButton("Open trace…")
        button.setObjectName("primary")
        button.setToolTip("Ctrl+O")
        button.clicked.connect(self.choose)
        hint = QLabel("or drop it anywhere: Nsight Systems exports (.sqlite), torch profiler traces, recordings.")
        hint.setObjectName("muted")
        hint.setWordWrap(True)
        grid = QGridLayout()
        grid.setHorizontalSpacing(px(2 * GRID))
        grid.setVerticalSpacing(px(2))
        grid.addWidget(icon, 0, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(title, 0, 1, 1, 2)
        grid.addWidget(line, 1, 1, 1, 2)
        grid.setRowMinimumHeight(2, px(2 * GRID))
        grid.addWidget(button, 3, 1)
        grid.addWidget(hint, 3, 2)
        grid.setRowMinimumHeight(4, px(GRID))
        grid.addLayout(self._live(), 5, 1, 1, 2)
        grid.setColumnStretch(2, 1)
        return grid

    def _live(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(self._theme.px(GRID))
        for text, tip, signal in (
            ("Watch the built-in engine", "A small language model, run on this machine and recorded live", self.demo),
            ("Launch…", "Record a command (Ctrl+L)", self.launch),
            ("Attach…", "Attach to a running server (Ctrl+T)", self.attach),
        ):
            button = QPushButton(text)
            button.setToolTip(tip)
            button.clicked.connect(signal)
            row.addWidget(button)
        row.addStretch(1)
        return row

    def _list(self, title: str, entries: Sequence[tuple[str, str, tuple[str, ...]]], nothing: str) -> QWidget:
        px = self._theme.px
        box = QWidget()
        layout = QVBoxLayout(box)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(px(2))
        head = QLabel(title)
        head.setFont(self._theme.font("strong"))
        head.setContentsMargins(px(8), 0, 0, 0)
        layout.addWidget(head)
        layout.addSpacing(px(4))
        for name, note, paths in entries:
            layout.addWidget(self._entry(name, note, paths))
        if not entries:
            empty = QLabel(nothing)
            empty.setObjectName("muted")
            empty.setWordWrap(True)
            empty.setContentsMargins(px(8), 0, 0, 0)
            layout.addWidget(empty)
        layout.addStretch(1)
        return box

    def _entry(self, name: str, note: str, paths: tuple[str, ...]) -> QPushButton:
        button = QPushButton()
        button.setObjectName("entry")
        button.setAccessibleName(name)
        button.setAccessibleDescription(note)
        button.setToolTip("\n".join(paths))
        button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        button.clicked.connect(lambda: self.wanted.emit(paths))
        layout = QVBoxLayout(button)
        layout.setContentsMargins(*(self._theme.px(step) for step in (8, 6, 8, 6)))
        layout.setSpacing(0)
        for text, style in ((name, ""), (note, "small")):
            label = Elided(self._theme)
            label.setObjectName(style)
            label.set_text(text)
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            layout.addWidget(label)
        button.setFixedHeight(layout.sizeHint().height())
        return button


def sample_traces() -> list[Path]:
    """The samples in the repository or beside the installed program; none where the folder is missing."""
    for folder in (
        Path(__file__).resolve().parent.parent.parent / "sample_traces",
        Path(sys.prefix) / "share" / "inflight-inspector" / "sample_traces",
    ):
        if folder.is_dir():
            return sorted(path for path in folder.iterdir() if path.name.endswith(_SAMPLE_SUFFIXES) and _is_trace(path))
    return []


def _is_trace(path: Path) -> bool:
    return not path.name.endswith(".truth.json")


def _name(path: Path) -> str:
    for suffix in _SAMPLE_SUFFIXES:
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix).replace("_", " ").capitalize()
    return path.name


def _about(path: Path) -> str:
    """The first sentence of the page that goes with a sample; else its file name."""
    page = path.with_name(path.name.split(".")[0] + ".md")
    try:
        lines = [line.strip() for line in page.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return path.name
    text = next((line for line in lines if line and not line.startswith(("#", "`", "-", "|"))), path.name)
    return text.split(". ")[0].rstrip(".").replace("`", "")


def _title(paths: Sequence[str]) -> str:
    return Path(paths[0]).name + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def _place(paths: Sequence[str]) -> str:
    folder = Path(paths[0]).parent
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)
