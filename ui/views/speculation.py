"""Speculation: how many drafted tokens were accepted, where they were turned down, and which draft length pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSplitter, QVBoxLayout, QWidget

from inspector.picture.speculation import SpeculationPicture, speculation
from inspector.trace.selection import Selection, Window
from ui.export import Rows
from ui.questions import Question
from ui.speculation.chart import Chart
from ui.speculation.charts import LengthChart, OverTimeChart, PositionChart
from ui.speculation.figures import measures
from ui.speculation.legend import Legend
from ui.speculation.ribbon_view import RibbonView
from ui.speculation.table import RequestList, request_list
from ui.views.view import Host, Need, View
from ui.widgets.elided import Elided
from ui.widgets.measures import Measures
from ui.widgets.table import TableView

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

_BIN_PX = 5


class Speculation(View):
    """Figures, three charts, and below them the token ribbon beside the requests."""

    ID: ClassVar[str] = "speculation"
    TITLE: ClassVar[str] = "Speculation"
    NEEDS: ClassVar[tuple[Need, ...]] = (
        Need(
            ("steps", "iterations"), "No speculation to show: no iterations of an engine were recorded in this trace."
        ),
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.answer: SpeculationPicture | None = None
        self._sort, self._descending = "rate", True
        theme = host.theme
        self.measures = Measures(theme, "Acceptance")
        self.over_time, self.by_position, self.by_length = (
            OverTimeChart(theme),
            PositionChart(theme),
            LengthChart(theme),
        )
        self.legend = Legend(theme)
        self.note, self.scope = Elided(theme), Elided(theme)
        self.ribbon_title = QLabel()
        self.ribbon = RibbonView(theme)
        self.table = TableView(theme, "Requests by acceptance")
        self.table.sort_asked.connect(self._sorted)
        self.table.current_changed.connect(self._current)
        self.table.clicked.connect(lambda index: self._current(index.row()))
        # The chart has its width later than the view.
        self.over_time.resized.connect(self.refresh)
        self._lay_out()

    @property
    def charts(self) -> tuple[Chart, ...]:
        """From left to right."""
        return self.over_time, self.by_position, self.by_length

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """Of the selected range; the ribbon of the selected request."""
        bins = max(int(self.over_time.area.width()) // _BIN_PX, 8)
        args = (selection.window, selection.request, bins)
        return Question(speculation, (trace, *args), (id(trace), trace.generation, *args))

    def show_answer(self, answer: SpeculationPicture) -> None:
        """All parts."""
        self.answer = answer
        for chart in self.charts:
            chart.show_picture(answer)
        self.measures.say(measures(answer))
        self.legend.say(answer)
        where = self.session.whole_words if self.session.selection.window is None else "selected range"
        passes = answer.everything.counts.passes if answer.everything is not None else 0
        self.scope.set_text(*((f"{passes:,} passes of the target, {where}", where) if passes else (where,)))
        notes = list(answer.missing)
        if not answer.drafted and answer.everything is not None:
            notes.insert(0, "Nothing was drafted: record with speculation on, e.g. inflight demo --draft model")
        self.note.set_text(" · ".join(notes))
        self.note.setToolTip("\n".join(notes))
        self.note.setVisible(bool(notes))
        self._fill_table()
        trace = self.session.trace
        self.ribbon.show_ribbon(answer.ribbon, trace.info.missing.get("tokens", "") if trace is not None else "")
        self.ribbon_title.setText(self._ribbon_words())

    def rows_for_copy(self) -> Rows | None:
        """The table of requests; where there is none, acceptance over time."""
        if self.answer is None:
            return None
        if self.answer.by_request is not None:
            return self.table.rows(only_selected=len(self.table.selected_rows()) > 1)
        found = self.answer.over_time
        columns = (found.edges[:-1], found.edges[1:], found.drafted, found.accepted)
        return Rows(
            ("start_ns", "end_ns", "drafted", "accepted"), zip(*(each.tolist() for each in columns), strict=True)
        )

    def retheme(self) -> None:
        """Type sizes anew."""
        self.measures.retheme()
        self.table.retheme()
        self.ribbon.retheme()
        self.legend.retheme()
        for chart in self.charts:
            chart.update()
        self.update()

    def take_focus(self) -> None:
        """To the table."""
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    def _fill_table(self) -> None:
        if self.answer is None:
            return
        content = request_list(self.answer, self._sort, self._descending)
        subject = (self.session.selection.window, self._sort, self._descending)
        self.table.set_content(content, self._sort, self._descending, subject)
        chosen = self.session.selection.request
        found = next((at for at, row in enumerate(content.rows) if row.request == chosen), -1)
        if found >= 0:
            self.table.show_row(found)

    def _sorted(self, key: str, descending: bool) -> None:
        self._sort, self._descending = key, descending
        self._fill_table()

    def _current(self, row: int) -> None:
        content = self.table.content
        # A table that is given the focus makes its first row the current one, which is no choice of the user.
        if row not in self.table.selected_rows():
            return
        if isinstance(content, RequestList) and 0 <= row < len(content):
            self.session.select(self.session.selection.but(request=content.rows[row].request))

    def _ribbon_words(self) -> str:
        ribbon = self.answer.ribbon if self.answer is not None else None
        if ribbon is None:
            return "Tokens"
        chosen = self.session.selection.request
        other = chosen is not None and chosen != ribbon.request
        text = f"Tokens of request {ribbon.request}"
        if ribbon.total > len(ribbon.passes):
            text += f", the last {len(ribbon.passes):,} of {ribbon.total:,} passes"
        return text + (f" (those of request {chosen} were not recorded)" if other else "")

    def _lay_out(self) -> None:
        px = self.theme.px
        self.paint_background()
        for label in (self.note, self.scope):
            label.setObjectName("muted")
        self.ribbon_title.setObjectName("small")
        self.scope.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        head = QHBoxLayout()
        head.setSpacing(px(8))
        head.addWidget(self.legend, 3)
        head.addWidget(self.scope, 2)
        top = QVBoxLayout()
        top.setContentsMargins(px(8), px(8), px(8), 0)
        top.setSpacing(px(6))
        top.addLayout(head)
        top.addWidget(self.measures)
        top.addWidget(self.note)
        charts = QSplitter(Qt.Orientation.Horizontal)
        for chart in self.charts:
            charts.addWidget(chart)
        charts.setSizes([px(420), px(320), px(320)])
        tokens = QWidget()
        column = QVBoxLayout(tokens)
        column.setContentsMargins(0, px(4), 0, 0)
        column.setSpacing(0)
        line = QHBoxLayout()
        line.setContentsMargins(px(8), 0, px(8), 0)
        line.addWidget(self.ribbon_title)
        column.addLayout(line)
        column.addWidget(self.ribbon, 1)
        below = QSplitter(Qt.Orientation.Horizontal)
        below.addWidget(tokens)
        below.addWidget(self.table)
        below.setSizes([px(520), px(520)])
        # In a low dock the charts need their room more: these scroll.
        for widget in (self.ribbon, self.table):
            widget.setMinimumHeight(px(24))
        parts = QSplitter(Qt.Orientation.Vertical)
        parts.addWidget(charts)
        parts.addWidget(below)
        parts.setStretchFactor(0, 3)
        parts.setStretchFactor(1, 4)
        for splitter in (charts, below, parts):
            splitter.setChildrenCollapsible(False)
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(px(4))
        layout.addLayout(top)
        layout.addWidget(parts, 1)
        self.note.hide()
