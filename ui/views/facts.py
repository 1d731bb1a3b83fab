"""The side bar: what is open, what it holds, what is wrong with it, what it lacks and how to record that."""

from __future__ import annotations

import re
from typing import Any, ClassVar, NamedTuple

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFormLayout, QLabel, QPushButton, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from inspector import units
from inspector.analysis.iterations import Iterations
from inspector.picture.labels import moment
from inspector.picture.places import place_of
from inspector.trace.quality import CODES
from inspector.trace.selection import Selection, Window
from inspector.trace.trace import Trace
from ui.export import Rows
from ui.kept import Mark
from ui.questions import Question
from ui.views.view import Host, View

_LABEL = 96
_QUALITY = "Quality: "
# Where a long word may go on in the next line.
_BREAKS = re.compile(r"(?<=[_./:-])(?=\w)|(?<=[a-z])(?=[A-Z])")
_WORDS = {"info": "note", "suspect": "suspect", "loss": "loss"}


class Fact(NamedTuple):
    """A line of the side bar; without a label it heads the lines below. `severity` as of quality notes, `place` is
    where in time that is.
    """

    label: str
    text: str
    severity: str = ""
    place: Window | None = None


def facts(trace: Trace) -> list[Fact]:
    """Everything that the side bar says."""
    info = trace.info
    found = [Fact("", "File")]
    found += [Fact("path", path) for path in info.paths]
    found += [Fact("format", " ".join(part for part in (info.kind, info.schema_version) if part))]
    found += [Fact("made by", info.producer)] if info.producer else []
    found += [Fact("basis", info.basis), Fact("duration", f"{units.time(trace.end_ns)} ({trace.end_ns:,} ns)")]
    if trace.begin_ns < 0:
        found.append(Fact("before", f"{units.time(-trace.begin_ns)} of which the server told when it was attached to"))
    found += [Fact(name, text) for name, text in info.details.items()]
    found.append(Fact("", "What is in it"))
    found += [Fact("device", trace.device_name(row)) for row in range(len(trace["devices"]))]
    found += [Fact("process", trace.process_name(row)) for row in range(len(trace["processes"]))]
    counted = [(name, len(table)) for name, table in trace.tables.items() if len(table) and table.schema.sorted_by]
    found += [Fact(name.replace("_", " "), f"{rows:,}") for name, rows in counted]
    iterations = trace.index(Iterations)
    if len(iterations):
        source = f"from {iterations.source}"
        if iterations.confidence < 1:
            source += f", confidence {iterations.confidence:.2f}"
        found.append(Fact("iterations", f"{len(iterations):,} {source}"))
    found.append(Fact("", f"{_QUALITY}{len(trace.quality.notes)} notes"))
    for note in sorted(trace.quality.notes, key=lambda note: ("loss", "suspect", "info").index(note.severity)):
        count = f"{note.count:,} × " if note.count > 1 else ""
        first = f" (first: {note.first})" if note.first else ""
        about = CODES[note.code][1]
        text = f"{count}{note.text}{first}" if note.text else f"{count}{about}"
        found.append(Fact(_WORDS[note.severity], text, note.severity, place_of(trace, note)))
    missing = [(table, how) for table, how in info.missing.items() if table in trace.tables and not len(trace[table])]
    if missing:
        found.append(Fact("", "Not in this file"))
        found += [Fact(table.replace("_", " "), how) for table, how in missing]
    return found


class Facts(View):
    """Labelled lines under headings, all of them to be selected and copied."""

    ID: ClassVar[str] = "facts"
    TITLE: ClassVar[str] = "About this trace"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._facts: list[Fact] = []
        self._notes: QLabel | None = None
        self._notes_wanted = False
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setAccessibleName(self.TITLE)
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._area)
        self.paint_background()

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """Asked once per trace."""
        return Question(facts, (trace,), (id(trace), trace.generation))

    def show_answer(self, answer: list[Fact]) -> None:
        """Lay the lines out."""
        self._facts = answer
        page = QWidget()
        page.setObjectName("panel")
        form = QFormLayout(page)
        px = self.theme.px
        form.setContentsMargins(px(16), px(8), px(16), px(16))
        form.setHorizontalSpacing(px(12))
        form.setVerticalSpacing(px(4))
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        for fact in answer:
            text = QLabel(fact.text.replace("/", "/\u200b") if fact.label == "path" else fact.text)
            text.setTextFormat(Qt.TextFormat.PlainText)
            text.setWordWrap(True)
            text.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
            text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            if not fact.label:
                text.setFont(self.theme.font("strong"))
                text.setContentsMargins(0, px(8), 0, 0)
                form.addRow(text)
                if fact.text.startswith(_QUALITY):
                    self._notes = text
                continue
            label = QLabel(_BREAKS.sub("\u200b", fact.label))
            label.setWordWrap(True)
            label.setFixedWidth(px(_LABEL))
            label.setObjectName({"loss": "wrong", "suspect": "doubt"}.get(fact.severity, "muted"))
            form.addRow(label, text)
            if fact.place is not None:
                form.addRow("", self._link(fact.label, fact.place))
        self._area.setWidget(page)
        self._scroll()

    def _link(self, word: str, place: Window) -> QPushButton:
        link = QPushButton(f"Show it at {moment(place.start)}")
        link.setObjectName("link")
        link.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        link.clicked.connect(lambda: self._go(word, place))
        return link

    def _go(self, word: str, place: Window) -> None:
        """Bring it into view, with a mark on it until the next one."""
        kept = (mark for mark in self.session.marks if mark.kept)
        self.session.set_marks([*kept, Mark(place.start, place.end, word, kept=False)])
        margin = max(place.length, self.session.whole.length // 200)
        self.session.look(Window(place.start - margin, place.end + margin))

    def show_notes(self) -> None:
        """Scroll to the quality notes, as soon as they are there."""
        self._notes_wanted = True
        self._scroll()

    def _scroll(self) -> None:
        if self._notes_wanted and self._notes is not None:
            # Lines have their places when this page has its width.
            QTimer.singleShot(0, self, self._to_notes)

    def _to_notes(self) -> None:
        if self._notes is not None:
            self._notes_wanted = False
            self._area.verticalScrollBar().setValue(self._notes.y())

    def retheme(self) -> None:
        """Type sizes anew."""
        if self._facts:
            self.show_answer(self._facts)

    def rows_for_copy(self) -> Rows | None:
        """The lines."""
        rows: list[tuple[Any, ...]] = [(fact.label, fact.text) for fact in self._facts]
        return Rows(("label", "text"), rows) if rows else None
