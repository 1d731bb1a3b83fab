"""Kernels: what ran, how often, how long, how it is spread, and how late after its launch."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout

from inspector import units
from inspector.trace.schema import WORK_TABLES
from inspector.trace.selection import Selection, Window
from inspector.trace.trace import Trace
from ui.export import Rows
from ui.kernel_rows import KernelList, Options, kernel_rows
from ui.questions import Question
from ui.views.view import Host, Need, View
from ui.widgets.elided import Elided
from ui.widgets.pattern_field import PatternField
from ui.widgets.segments import Segments
from ui.widgets.table import TableView


class Kernels(View):
    """A table by name or category; the name that is current is selected everywhere."""

    ID: ClassVar[str] = "kernels"
    IN_ROUNDS: ClassVar[bool] = True
    TITLE: ClassVar[str] = "Kernels"
    NEEDS: ClassVar[tuple[Need, ...]] = (Need(WORK_TABLES, "No kernels to show: none were recorded in this trace."),)

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.options = Options()
        self._answer: KernelList | None = None
        self._sort, self._descending = "total", True
        self._pattern: re.Pattern[str] | None = None
        self.by = Segments("Group kernels", (("name", "By name"), ("category", "By category")))
        self.by.chosen.connect(self._regroup)
        self.filter = PatternField("Filter names (regular expression)", "Filter kernel names")
        self.filter.wanted.connect(self._pattern_wanted)
        self.sums = QLabel()
        self.scope = Elided(host.theme)
        self.table = TableView(host.theme, "Kernels")
        self.table.sort_asked.connect(self._sort_asked)
        self.table.chosen.connect(self._current)
        self.table.current_changed.connect(self._current)
        self._lay_out()

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """The statistics of the device in the selected range."""
        if self.session.device < 0:
            return None
        options = replace(self.options, device=self.session.device)
        key = (id(trace), trace.generation, selection.window, options)
        return Question(kernel_rows, (trace, selection.window, options), key)

    def show_answer(self, answer: KernelList) -> None:
        """Fill the table."""
        self._answer = answer
        self.scope.set_text(*self.session.scope())
        self._show()

    def rows_for_copy(self) -> Rows | None:
        """The rows that are selected, all of them where there is at most one."""
        return self.table.rows(only_selected=len(self.table.selected_rows()) > 1)

    def take_focus(self) -> None:
        """To the table."""
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    def retheme(self) -> None:
        """Row heights and field widths."""
        self.table.retheme()
        self.filter.setMinimumWidth(self.theme.px(160))
        self.filter.setMaximumWidth(self.theme.px(320))
        self.update()

    def _lay_out(self) -> None:
        px = self.theme.px
        self.paint_background()
        self.sums.setObjectName("small")
        self.sums.setTextFormat(Qt.TextFormat.PlainText)
        self.sums.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        tools = QHBoxLayout()
        tools.setContentsMargins(px(8), px(8), px(8), 0)
        tools.setSpacing(px(8))
        tools.addWidget(self.by)
        tools.addWidget(self.filter, 1)
        self.scope.setObjectName("muted")
        self.scope.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        tools.addWidget(self.scope, 1)
        foot = QHBoxLayout()
        foot.setContentsMargins(px(8), px(2), px(8), px(4))
        foot.addWidget(self.sums)
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(px(4))
        layout.addLayout(tools)
        layout.addWidget(self.table, 1)
        layout.addLayout(foot)
        self.retheme()

    def _show(self) -> None:
        answer = self._answer
        if answer is None:
            return
        content = answer.arranged(self._sort, self._descending, self._pattern)
        subject = (self.session.device, self.session.selection.window, self.options.by, self._sort, self._descending)
        self.table.set_content(content, self._sort, self._descending, subject)
        count = sum(row.count for row in content.rows)
        said = (
            f"{len(content):,} of {len(answer):,} rows"
            if self._pattern
            else f"{len(answer):,} row{'s' * (len(answer) != 1)}"
        )
        said += f", {count:,} executions, {units.time(content.total_ns)} together"
        trace = self.session.trace
        if trace is not None and trace.quality.count("graph-level"):
            said += ". Kernels inside graphs are not in this file: record with --cuda-graph-trace=node"
        self.sums.setText(said)
        self.sums.setToolTip(f"{content.total_ns:,} ns")
        self._follow_selection()

    def _follow_selection(self) -> None:
        """The selected name's row, without moving the selection."""
        content, name = self.table.content, self.session.selection.name
        if not isinstance(content, KernelList) or name is None or self.options.by != "name":
            return
        row = next((at for at, each in enumerate(content.rows) if each.name_id == name), -1)
        if row >= 0 and row != self.table.currentIndex().row():
            self.table.show_row(row)

    def refresh(self) -> None:
        """Also follows the name that is selected elsewhere."""
        super().refresh()
        self._follow_selection()

    def _regroup(self, by: Any) -> None:
        self.options = replace(self.options, by=by)
        self.refresh()

    def _sort_asked(self, key: str, descending: bool) -> None:
        self._sort, self._descending = key, descending
        self._show()

    def _pattern_wanted(self, text: str) -> None:
        self._pattern = re.compile(text, re.IGNORECASE) if text else None
        self._show()

    def _current(self, row: int) -> None:
        content = self.table.content
        if isinstance(content, KernelList) and self.options.by == "name":
            window, name = self.session.selection.window, content.rows[row].name_id
            self.session.select(Selection(window=window, device=self.session.device, name=name))
