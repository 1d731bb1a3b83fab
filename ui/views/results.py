"""Recipe results: every table that a run of `nsys recipe` left, with units, by report, sorted and searched."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout

from inspector.trace.results import Results, ResultTable
from inspector.trace.selection import Selection, Window
from inspector.trace.trace import Trace
from ui.export import Rows
from ui.questions import Question
from ui.result_rows import ResultList, Wanted, result_rows, unsorted
from ui.views.view import Host, State, View
from ui.widgets.elided import Elided
from ui.widgets.pattern_field import PatternField
from ui.widgets.table import TableView

_NOTHING = "No results of a recipe to show: this trace holds records."
_HOW = "Open the folder that nsys recipe has made, the .nsys-analysis file in it, or a zip of it."
_UNKNOWN = "This program does not know this recipe: its tables are shown as they are, without units."


_OPENS = "Double click or Enter shows a row in the timeline"
_NO_TIMES = "No column of this table is a time that this program knows, so the timeline has no place for its rows"
_NO_TIME = "This row has no time that can be read, so the timeline has no place for it"


class RecipeResults(View):
    """One table at a time, chosen by its name; those of several reports can be narrowed to one.

    `asked_place(window, table, row, device)`: the record of a row is wanted in the timeline, or without one (-1) that
    time of the device.
    """

    ID: ClassVar[str] = "results"
    TITLE: ClassVar[str] = "Recipe results"

    asked_place = Signal(object, str, int, int)

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.wanted = Wanted()
        self._answer: ResultList | None = None
        self._places: list[tuple[Results, ResultTable]] = []
        self.outputs, self.reports = QComboBox(), QComboBox()
        for box, name in ((self.outputs, "Table"), (self.reports, "Report")):
            box.setAccessibleName(name)
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(16)
        self.outputs.activated.connect(lambda at: self._show_table())
        self.reports.activated.connect(lambda at: self._narrow())
        self.filter = PatternField("Find in texts (regular expression)", "Find rows")
        self.filter.wanted.connect(self._pattern_wanted)
        self.title = Elided(host.theme, "strong", "strong")
        self.about, self.sums = QLabel(), QLabel()
        self.table = TableView(host.theme, "Recipe results")
        self.table.sort_asked.connect(self._sort_asked)
        self.table.chosen.connect(self._go)
        self.table.current_changed.connect(lambda row: self._say_sums())
        self._lay_out()

    @property
    def shown(self) -> ResultTable | None:
        """The table that is chosen."""
        at = self.outputs.currentIndex()
        return self._places[at][1] if 0 <= at < len(self._places) else None

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """The rows of the chosen table."""
        table = self.shown
        if table is None:
            return None
        return Question(result_rows, (table, self.wanted), (id(trace), self.outputs.currentIndex(), self.wanted))

    def show_answer(self, answer: ResultList) -> None:
        """Fill the table."""
        wanted = self.wanted
        subject = (self.outputs.currentIndex(), wanted)
        self._answer = answer
        self.table.set_content(answer, wanted.sort, wanted.descending, subject)
        self._say_sums()

    def rows_for_copy(self) -> Rows | None:
        """The rows that are selected, all of them where there is at most one."""
        return self.table.rows(only_selected=len(self.table.selected_rows()) > 1)

    def take_focus(self) -> None:
        """To the table."""
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    def retheme(self) -> None:
        """Row heights and field widths."""
        self.table.retheme()
        self.title.retheme()
        self.filter.setMinimumWidth(self.theme.px(160))
        self.filter.setMaximumWidth(self.theme.px(360))
        self.update()

    def _trace_changed(self) -> None:
        self._answer = None
        trace = self.session.trace
        found = trace.results if trace is not None else ()
        self._places = [(results, table) for results in found for table in results.tables]
        self.wanted = Wanted(pattern=self.wanted.pattern)
        self.outputs.clear()
        for results, table in self._places:
            self.outputs.addItem(f"{results.title}: {table.name}" if len(found) > 1 else table.name)
        self._show_reports()
        super()._trace_changed()
        if trace is not None and not self._places:
            self._say(State.NO_DATA, _NOTHING, _HOW)

    def _show_table(self) -> None:
        table = self.shown
        if table is not None:
            self.wanted = unsorted(self.wanted, table)
        self._show_reports()
        self.refresh()

    def _show_reports(self) -> None:
        """The reports to choose from, and what the recipe is about."""
        at = self.outputs.currentIndex()
        results, table = self._places[at] if 0 <= at < len(self._places) else (None, None)
        self.reports.clear()
        if results is None or table is None:
            return
        self.reports.addItem("All reports", -1)
        for number, name in enumerate(results.reports):
            self.reports.addItem(f"{number}: {name}", number)
        self.reports.setVisible(table.report >= 0 and len(results.reports) > 1)
        known = self.reports.findData(self.wanted.report)
        self.reports.setCurrentIndex(max(known, 0))
        if known < 0 or table.report < 0:
            self.wanted = replace(self.wanted, report=-1)
            self.reports.setCurrentIndex(0)
        count = len(results.reports)
        over = f"{count:,} report{'s' if count != 1 else ''}" if count else ""
        when = results.details.get("recipe ended", "")
        self.title.set_text(" · ".join(part for part in (results.title, over, when) if part), results.title)
        self.title.setToolTip("\n".join(f"{key}: {value}" for key, value in results.details.items()))
        self.about.setText(results.description or _UNKNOWN)

    def _go(self, row: int) -> None:
        """To the place of a row in the timeline, or why there is none."""
        trace, answer = self.session.trace, self._answer
        if trace is None or answer is None:
            return
        spans, at = answer.table.spans, int(answer.order[row])
        if spans is None:
            self._say_sums(_NO_TIMES)
        elif not spans.known[at]:
            self._say_sums(_NO_TIME)
        else:
            window = Window(int(spans.start[at]), int(spans.end[at]))
            found = -1 if spans.thread[at] < 0 else _range_of(trace, window, int(spans.thread[at]))
            if window.length == 0:
                # A moment: the piece of time around it, as long as what is in view.
                half = self.session.window.length // 2
                window = Window(window.start - half, window.start + half)
            self.asked_place.emit(window, "ranges", found, int(spans.device[at]))

    def _say_sums(self, why: str = "") -> None:
        """How many rows, what is odd about them; and what a row does, or why it does not."""
        answer = self._answer
        if answer is None:
            return
        said = [f"{len(answer):,} of {len(answer.table):,} rows" if self._is_narrowed() else f"{len(answer):,} rows"]
        said += [answer.table.note] if answer.table.note else []
        said += [why or _OPENS] if why or answer.table.spans is not None else []
        self.sums.setText(". ".join(said))
        style = "doubt" if why else "small"
        if self.sums.objectName() != style:
            self.sums.setObjectName(style)
            self.sums.style().unpolish(self.sums)
            self.sums.style().polish(self.sums)

    def _is_narrowed(self) -> bool:
        return bool(self.wanted.pattern) or self.wanted.report >= 0

    def _narrow(self) -> None:
        self.wanted = replace(self.wanted, report=self.reports.currentData())
        self.refresh()

    def _sort_asked(self, key: str, descending: bool) -> None:
        self.wanted = replace(self.wanted, sort=key, descending=descending)
        self.refresh()

    def _pattern_wanted(self, text: str) -> None:
        self.wanted = replace(self.wanted, pattern=text)
        self.refresh()

    def _lay_out(self) -> None:
        px = self.theme.px
        self.paint_background()
        for label, style in ((self.about, "muted"), (self.sums, "small")):
            label.setObjectName(style)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.about.setWordWrap(True)
        tools = QHBoxLayout()
        tools.setContentsMargins(px(8), px(8), px(8), 0)
        tools.setSpacing(px(8))
        for widget, stretch in ((self.outputs, 0), (self.reports, 0), (self.filter, 1), (self.title, 1)):
            tools.addWidget(widget, stretch)
        self.title.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        about = QHBoxLayout()
        about.setContentsMargins(px(8), 0, px(8), 0)
        about.addWidget(self.about)
        foot = QHBoxLayout()
        foot.setContentsMargins(px(8), px(2), px(8), px(4))
        foot.addWidget(self.sums)
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(px(4))
        layout.addLayout(tools)
        layout.addLayout(about)
        layout.addWidget(self.table, 1)
        layout.addLayout(foot)
        self.retheme()


def _range_of(trace: Trace, window: Window, thread: int) -> int:
    """The row of `ranges` that lies there on that thread, -1 where there is none."""
    ranges = trace["ranges"]
    low, high = np.searchsorted(ranges["start"], [window.start, window.start + 1]).tolist()
    fits = (ranges["end"][low:high] == window.end) & (ranges["thread"][low:high] == thread)
    found = np.flatnonzero(fits)
    return low + int(found[0]) if len(found) else -1
