"""Idle gaps: how much by which cause, and each gap with what held the device up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QSizePolicy, QVBoxLayout

from inspector import units
from inspector.analysis.causes import CAUSES, EXPLANATIONS
from inspector.trace.schema import WORK_TABLES
from inspector.trace.selection import Selection, Window
from inspector.trace.trace import Trace
from ui.export import Rows
from ui.gap_rows import Answer, FoundGap, Options, find_gap, gap_rows
from ui.gap_table import GapList, GroupList
from ui.questions import Question
from ui.views.view import Host, Need, State, View
from ui.widgets.cause_bar import CauseBar
from ui.widgets.elided import Elided
from ui.widgets.segments import Segments
from ui.widgets.table import TableView

_GROUPS = (
    ("gap", "Every gap"),
    ("cause", "By cause"),
    ("host", "By what the host did"),
    ("kernel", "By next kernel"),
    ("iteration", "By iteration"),
)
_NOUNS = {"gap": "gaps", "cause": "causes", "host": "host names", "kernel": "kernels", "iteration": "iterations"}
# How much of the surroundings of a gap comes into view with it.
_MARGIN = 0.5


class Gaps(View):
    """A bar of idle by cause over a table; the foot of the table sums to all idle time exactly."""

    ID: ClassVar[str] = "gaps"
    IN_ROUNDS: ClassVar[bool] = True
    TITLE: ClassVar[str] = "Idle gaps"
    NEEDS: ClassVar[tuple[Need, ...]] = (
        Need(WORK_TABLES, "No idle time to show: no work on a device was recorded in this trace."),
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.options = Options()
        self._answer: Answer | None = None
        # What the group alone is called, as its row said.
        self._only_name = ""
        self.bar = CauseBar(host.theme)
        self.bar.chosen.connect(self._cause_chosen)
        self.by = Segments("Group idle time", _GROUPS)
        self.by.chosen.connect(self._regroup)
        self.shortest = QLineEdit()
        self.shortest.setPlaceholderText("any length")
        self.shortest.setToolTip(
            "Gaps shorter than this are not listed but summed: 20 µs, 1.5 ms; plain numbers are µs"
        )
        self.shortest.setAccessibleName("Shortest gap to list")
        self.shortest.setClearButtonEnabled(True)
        self.shortest.editingFinished.connect(self._shortest_changed)
        self.only = QPushButton()
        self.only.setObjectName("link")
        self.only.clicked.connect(lambda: self._choose(only=None))
        self.why, self.sums = QLabel(), QLabel()
        self.scope = Elided(host.theme)
        self.table = TableView(host.theme, "Idle gaps")
        self.table.sort_asked.connect(lambda key, down: self._choose(sort=key, descending=down))
        self.table.chosen.connect(self._go)
        self.table.current_changed.connect(self._current)
        self.table.clicked.connect(lambda index: self._current(index.row()))
        self._lay_out()

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """The gaps of the device in the selected range."""
        device = self.session.device
        if device < 0:
            return None
        self._follow_selection(selection)
        key = (id(trace), trace.generation, device, selection.window, self.options)
        return Question(gap_rows, (trace, device, selection.window, self.options), key)

    def show_answer(self, answer: Answer) -> None:
        """Fill bar, table and foot."""
        self._answer = answer
        only = self.options.only
        self.scope.set_text(*self.session.scope())
        selected = only[1] if only and only[0] == "cause" else -1
        self.bar.set_parts(answer.by_cause, answer.idle_ns, selected, answer.notes)
        subject = (answer.device, answer.window, self.options)
        self.table.set_content(answer.content, self.options.sort, self.options.descending, subject)
        self.only.setVisible(only is not None)
        if only is not None:
            name = self._only_name
            self.only.setText(f"only {name}  ×")
            self.only.setAccessibleName(f"Show all gaps, not only {name}")
        cause = CAUSES[only[1]] if only and only[0] == "cause" else ""
        self.why.setText(EXPLANATIONS.get(cause, ""))
        self.why.setVisible(bool(cause))
        self._say_sums(answer)
        self._follow_selection(self.session.selection)

    def rows_for_copy(self) -> Rows | None:
        """The rows that are selected, all of them where there is at most one."""
        return self.table.rows(only_selected=len(self.table.selected_rows()) > 1)

    def retheme(self) -> None:
        """Row heights, and the bar's own type."""
        self.table.retheme()
        self.shortest.setFixedWidth(self.theme.px(112))
        self.bar.resizeEvent(None)
        self.update()

    def take_focus(self) -> None:
        """To the table."""
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    def next_gap(self) -> None:
        """Go to the first gap after the one that is selected, or in the view where none is."""
        self._ask_gap(1)

    def previous_gap(self) -> None:
        """Go to the gap before it."""
        self._ask_gap(-1)

    def costliest_gap(self) -> None:
        """Go to the longest gap; again: to the next in length."""
        self._ask_gap(0)

    def _lay_out(self) -> None:
        px = self.theme.px
        self.paint_background()
        for label, name in ((self.why, "muted"), (self.sums, "small")):
            label.setObjectName(name)
            label.setTextFormat(Qt.TextFormat.PlainText)
        self.why.setWordWrap(True)
        self.sums.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        tools = QHBoxLayout()
        tools.setSpacing(px(8))
        tools.addWidget(self.by)
        tools.addWidget(self.only)
        self.scope.setObjectName("muted")
        self.scope.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        tools.addWidget(self.scope, 1)
        tools.addSpacing(px(8))
        label = QLabel("At least")
        label.setObjectName("muted")
        label.setBuddy(self.shortest)
        tools.addWidget(label)
        tools.addWidget(self.shortest)
        top = QVBoxLayout()
        top.setContentsMargins(px(8), px(8), px(8), 0)
        top.setSpacing(px(8))
        top.addWidget(self.bar)
        top.addWidget(self.why)
        top.addLayout(tools)
        foot = QHBoxLayout()
        foot.setContentsMargins(px(8), px(2), px(8), px(4))
        foot.addWidget(self.sums)
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(px(4))
        layout.addLayout(top)
        layout.addWidget(self.table, 1)
        layout.addLayout(foot)
        self.only.hide()
        self.why.hide()
        self.retheme()

    def _choose(self, **changes: Any) -> None:
        self.options = replace(self.options, **changes)
        self.by.set_key(self.options.by)
        self.refresh()

    def _regroup(self, by: str) -> None:
        self._choose(by=by, sort="length" if by == "gap" else "total", descending=True, only=None)

    def _cause_chosen(self, cause: int) -> None:
        only = None if cause < 0 else ("cause", cause)
        self._only_name = CAUSES[cause] if only else ""
        self._choose(by="gap", only=only, sort="length", descending=True)

    def _shortest_changed(self) -> None:
        text = self.shortest.text().strip()
        try:
            shortest = max(units.parse_time(text, "us"), 0) if text else 0
        except ValueError:
            self.shortest.setProperty("wrong", True)
        else:
            self.shortest.setProperty("wrong", False)
            self._choose(min_ns=int(shortest))
        self.shortest.style().unpolish(self.shortest)
        self.shortest.style().polish(self.shortest)

    def _say_sums(self, answer: Answer) -> None:
        """Listed, shorter and apart sum to all idle time, to the nanosecond."""
        noun = _NOUNS[self.options.by]
        noun = noun.removesuffix("s") if answer.listed == 1 else noun
        parts = [(f"{answer.listed:,} {noun} listed", answer.listed_ns)]
        if answer.apart_ns:
            parts.append(("other gaps", answer.apart_ns))
        if answer.shorter:
            parts.append((f"{answer.shorter:,} shorter than {units.time(self.options.min_ns)}", answer.shorter_ns))
        shown = "  +  ".join(f"{what}: {units.time(ns)}" for what, ns in parts)
        self.sums.setText(f"{shown} = {units.time(answer.idle_ns)}, all idle time")
        exact = "  +  ".join(f"{what}: {ns:,} ns" for what, ns in parts)
        self.sums.setToolTip(f"{exact} = {answer.idle_ns:,} ns, all idle time")

    def _current(self, row: int) -> None:
        """A gap that is current is selected everywhere; its name too where the row is one name."""
        content = self._answer.content if self._answer is not None else None
        if isinstance(content, GapList):
            self._select(content.device, content.start_of(row), content.thread_of(row))
        elif isinstance(content, GroupList) and content.by == "kernel" and content.groups[row].key >= 0:
            self.session.select(self.session.selection.but(name=content.groups[row].key))

    def _go(self, row: int) -> None:
        """To the gap in the timeline; from a heading to its gaps."""
        content = self._answer.content if self._answer is not None else None
        if isinstance(content, GroupList):
            only = (content.by, content.groups[row].key)
            self._only_name = content.groups[row].label
            self._choose(by="gap", only=only, sort="length", descending=True)
        elif isinstance(content, GapList):
            self._current(row)
            self._look(content.span(row))

    def _follow_selection(self, selection: Selection) -> None:
        content = self._answer.content if self._answer is not None else None
        if self.state is not State.ANSWER or not isinstance(content, GapList) or selection.gap is None:
            return
        if selection.device is not None and selection.device != content.device:
            return
        row = content.row_of(selection.gap)
        if row >= 0 and row != self.table.currentIndex().row():
            self.table.show_row(row)

    def _ask_gap(self, step: int) -> None:
        trace, device = self.session.trace, self.session.device
        if trace is None or device < 0:
            return
        selected = self.session.selection.gap
        time = self.session.window.start - 1 if selected is None else selected
        key = (id(trace), trace.generation, device, selected, time, step)
        question = Question(find_gap, (trace, device, selected, time, step), key)
        self.host.asker.ask((self, "gap"), question, self._go_to, self._failed)

    def _go_to(self, found: FoundGap | None) -> None:
        if found is not None:
            self._select(found.device, found.span.start, found.thread)
            self._look(found.span)

    def _select(self, device: int, gap: int, thread: int) -> None:
        window = self.session.selection.window
        late = thread if thread >= 0 else None
        self.session.select(Selection(window=window, device=device, gap=gap, thread=late))

    def _look(self, span: Window) -> None:
        margin = round(span.length * _MARGIN)
        self.session.look(Window(span.start - margin, span.end + margin))
