"""KV pages: the map of a moment, the moment on a curve of pages over time, figures, page table, and prefixes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from inspector.analysis.page_log import PageLog
from inspector.picture.occupancy import Occupancy, occupancy
from inspector.picture.prefixes import LEGEND
from inspector.trace.selection import Selection, Window
from inspector.trace.trace import Trace
from ui.export import Cell, Rows
from ui.pages.figures import FigureList
from ui.pages.map import PageMapCanvas
from ui.pages.moment import Moment, Wanted, moment, page_tokens, where
from ui.pages.scrubber import LEAST, TALL, Scrubber
from ui.pages.table import PageRows
from ui.pages.tree import PrefixCanvas
from ui.questions import Question
from ui.views.view import Host, Need, View
from ui.widgets.elided import Elided
from ui.widgets.segments import Segments
from ui.widgets.swatches import Swatches
from ui.widgets.table import TableView

_COLOURS = (("request", "Request"), ("age", "Age"), ("references", "Holders"), ("tier", "Place"))
_SIDES = (("figures", "Figures"), ("table", "Page table"), ("tree", "Prefixes"))
_STATUS = ("free", "in use", "cached", "unknown")
_SIDE_PX = 330
# What a far step skips.
_FAR = 20


class KvPages(View):
    """The moment is the newest one of a trace that grows, until the user seeks another or selects an iteration."""

    ID: ClassVar[str] = "pages"
    TITLE: ClassVar[str] = "KV pages"
    NEEDS: ClassVar[tuple[Need, ...]] = (
        Need(("page_events",), "No KV pages to show: this trace has no record of which page went where."),
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.wanted = Wanted()
        self._shown: Moment | None = None
        self._asked_curve: object = None
        self._request: int | None = None
        self._iteration: int | None = None
        theme = host.theme
        self.by = Segments("Colour pages by", _COLOURS)
        self.by.chosen.connect(lambda by: self._want(by=by))
        self.legend = Swatches(theme, "Colours of the page map")
        self.where = Elided(theme)
        self.play = QPushButton("Play")
        self.play.setCheckable(True)
        self.newest = QPushButton("Follow")
        self.map = PageMapCanvas(theme)
        self.scrubber = Scrubber(theme)
        self.side = Segments("Beside the page map", _SIDES)
        self.figures = FigureList(theme)
        self.table = TableView(theme, "Page table")
        self.table_title = QLabel()
        self.tree = PrefixCanvas(theme)
        self.tree_legend = Swatches(theme, "Colours of the tree of prefixes")
        self._stack_of_sides = QStackedWidget()
        self._side = QWidget()
        self._connect()
        self._lay_out()

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """The pages at the moment; the curve is asked beside it."""
        self._ask_curve(trace, window)
        elsewhere = selection.request != self._request
        self._request = selection.request
        if selection.iteration != self._iteration:
            self._iteration = selection.iteration
            rows = np.flatnonzero(trace["iterations"]["iteration"] == selection.iteration)
            if len(rows):
                self.wanted = replace(self.wanted, time=int(trace["iterations"]["end"][rows[0]]), seek=False)
        # With an iteration it is that moment that matters, whether or not the request has pages then.
        seek = self.wanted.seek if not elsewhere else selection.request is not None and selection.iteration is None
        self.wanted = replace(self.wanted, request=selection.request, seek=seek)
        return Question(moment, (trace, self.wanted), (id(trace), trace.generation, self.wanted))

    def show_answer(self, answer: Moment) -> None:
        """Paint map, figures, table and tree of one moment."""
        self._shown = answer
        if self.wanted.seek:
            # Once: a request that ends later does not hold the view back.
            self.wanted = replace(self.wanted, seek=False, time=answer.time if answer.sought else self.wanted.time)
        page = self.session.selection.page
        selected = -1 if page is None else page
        words = where(answer)
        following = self.wanted.time is None
        if following:
            said = f"{words}, {'newest' if answer.trace.generation else 'busiest moment'}"
        elif self.wanted.time is not None and self.wanted.time < answer.trace.kept.from_ns:
            said = f"{words}, the oldest moment at hand"
        else:
            said = words
        self.where.set_text(said, words, words.partition(",")[0])
        self.newest.setEnabled(not following)
        self.newest.setText("Follow" if answer.trace.generation else "Busiest")
        self.map.show_moment(answer, selected)
        self.legend.set_entries(answer.map.legend)
        self.scrubber.set_time(answer.time, words)
        self.figures.show_moment(answer)
        self._show_table(answer)
        self.tree.show_picture(answer.tree, selected)
        self.tree_legend.set_entries(LEGEND)

    def rows_for_copy(self) -> Rows | None:
        """The page table where it is in front, else every page of the map."""
        if self._shown is None:
            return None
        if self.side.key == "table" and self._shown.table is not None:
            return self.table.rows()
        return Rows(("page", "status", "holders", "request", "since_ns"), _pages(self._shown))

    def refresh(self) -> None:
        """Also marks a page that is selected elsewhere."""
        super().refresh()
        self.scrubber.set_window(self.session.window)
        if self._shown is not None:
            page = self.session.selection.page
            self.map.show_moment(self._shown, -1 if page is None else page)
            self.tree.show_picture(self._shown.tree, -1 if page is None else page)

    def retheme(self) -> None:
        """Widths and row heights."""
        self._side.setFixedWidth(self._side_width())
        self.table.retheme()
        self.figures.retheme()
        self._share_height()
        for legend in (self.legend, self.tree_legend):
            legend.retheme()
        self.update()

    def take_focus(self) -> None:
        """To the map."""
        self.map.setFocus(Qt.FocusReason.OtherFocusReason)

    def resizeEvent(self, event: Any) -> None:
        """The side takes its share, and so does the curve."""
        super().resizeEvent(event)
        self._side.setFixedWidth(self._side_width())
        self._share_height()

    def _share_height(self) -> None:
        px = self.theme.px
        self.scrubber.setFixedHeight(min(max(self.height() * 3 // 10, px(LEAST)), px(TALL)))

    def _scrubber_resized(self) -> None:
        """The curve has other columns; the scrubber has its width later than the view."""
        trace = self.session.trace
        if trace is not None and self.isVisible():
            self._ask_curve(trace, self.session.window)

    def seek(self, time: int | None) -> None:
        """Look at that moment; None follows the newest."""
        self._want(time=time, seek=False)

    def follow(self) -> None:
        """Look at the newest moment of a trace that grows, else at the busiest."""
        self.session.release()
        self.seek(None)

    def follow_end(self) -> None:
        """The newest moment of a trace that grows, and on with it; else the last one."""
        self.session.follow_end()
        trace = self.session.trace
        if trace is not None and not trace.generation:
            self.seek(self.session.whole.end)

    def _followed(self) -> None:
        """Newest was asked for, in whichever view."""
        trace = self.session.trace
        if trace is not None and trace.generation and self.wanted.time is not None:
            self.seek(None)

    def toggle_play(self) -> None:
        """Let time go on from the moment, or stop it."""
        if self._shown is not None:
            self.scrubber.play(not self.scrubber.playing)

    def _side_width(self) -> int:
        return min(max(round(self.width() * 0.27), self.theme.px(_SIDE_PX)), max(self.width() // 2, 1))

    def _connect(self) -> None:
        self.play.toggled.connect(self.scrubber.play)
        self.scrubber.play_changed.connect(self._played)
        self.scrubber.sought.connect(self.seek)
        self.scrubber.resized.connect(self._scrubber_resized)
        self.scrubber.stepped.connect(self._step)
        self.newest.clicked.connect(self.follow)
        self.session.followed.connect(self._followed)
        self.map.picked.connect(self._picked)
        self.map.entered.connect(self._entered)
        self.tree.picked.connect(self._picked)
        self.side.chosen.connect(self._side_chosen)
        self.table.current_changed.connect(self._table_row)

    def _lay_out(self) -> None:
        px = self.theme.px
        self.paint_background()
        self.where.setObjectName("muted")
        self.where.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.play.setToolTip("Let time go on from the line (Space on the curve)")
        self.newest.setToolTip("The newest moment while a recording goes on, else the one with most pages in use")
        self.table_title.setObjectName("muted")
        self.table_title.setWordWrap(True)
        self.table_title.setTextFormat(Qt.TextFormat.PlainText)
        self.table_title.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.table_title.setContentsMargins(px(8), px(4), px(8), px(4))
        tools = QHBoxLayout()
        tools.setSpacing(px(8))
        tools.addWidget(self.by)
        tools.addWidget(self.legend, 2)
        tools.addWidget(self.where, 1)
        tools.addWidget(self.play)
        tools.addWidget(self.newest)
        tree, table = QWidget(), QWidget()
        for page, widgets in ((table, (self.table_title, self.table)), (tree, (self.tree_legend, self.tree))):
            column = QVBoxLayout(page)
            column.setContentsMargins(0, px(4), 0, 0)
            column.setSpacing(px(4))
            for widget in widgets:
                column.addWidget(widget, 1 if widget in (self.table, self.tree) else 0)
        for page in (self.figures, table, tree):
            self._stack_of_sides.addWidget(page)
        side = QVBoxLayout(self._side)
        side.setContentsMargins(0, 0, 0, 0)
        side.setSpacing(px(4))
        side.addWidget(self.side)
        side.addWidget(self._stack_of_sides, 1)
        middle = QHBoxLayout()
        middle.setSpacing(px(12))
        middle.addWidget(self.map, 1)
        middle.addWidget(self._side)
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(px(8), px(8), px(8), px(2))
        layout.setSpacing(px(8))
        layout.addLayout(tools)
        layout.addLayout(middle, 1)
        layout.addWidget(self.scrubber)
        self.table.hide()
        self.retheme()

    def _want(self, **changes: Any) -> None:
        self.wanted = replace(self.wanted, **changes)
        self.refresh()

    def _trace_changed(self) -> None:
        trace, shown = self.session.trace, self._shown
        if trace is None or shown is None or not _goes_on(shown.trace, trace):
            self.scrubber.play(False)
            self._shown, self._asked_curve, self._request, self._iteration = None, None, None, None
            self.wanted = Wanted(by=self.wanted.by, tree=self.wanted.tree)
        super()._trace_changed()

    def _ask_curve(self, trace: Trace, window: Window) -> None:
        key = (id(trace), trace.generation, window, self.scrubber.columns())
        if key == self._asked_curve:
            return
        self._asked_curve = key
        question = Question(occupancy, (trace, window, self.scrubber.columns()), key)
        self.host.asker.ask((self, "curve"), question, self._curve, self._failed)

    def _curve(self, answer: Occupancy) -> None:
        self.scrubber.show_occupancy(answer)

    def _show_table(self, answer: Moment) -> None:
        table = answer.table
        some = table is not None and len(table) > 0
        self.table.setVisible(some)
        if table is None:
            self.table_title.setText("Click a page: this is the page table of the request that holds it.")
            return
        request = answer.wanted.request
        if not len(table):
            self.table_title.setText(f"Request {request} holds no page at this moment.")
            return
        self.table_title.setText(f"Page table of request {request}")
        size = page_tokens(answer.trace, answer.time)
        self.table.set_content(PageRows(table, size), "", False, request)
        self.table.setAccessibleName(f"Page table of request {request}")
        page = self.session.selection.page
        row = PageRows(table, size).row_of(page) if page is not None else -1
        if row >= 0 and row != self.table.currentIndex().row():
            self.table.show_row(row)

    def _picked(self, page: int) -> None:
        """Select a page and, with it, who holds it."""
        shown, window = self._shown, self.session.selection.window
        if shown is None or page < 0:
            self.session.select(Selection(window=window, device=self.session.selection.device))
            return
        row = int(shown.pages.owner[page])
        request = int(shown.trace["requests"]["request"][row]) if row >= 0 else None
        if shown.mine is not None and page < len(shown.mine) and shown.mine[page]:
            request = shown.wanted.request
        self._request = request
        self.session.select(Selection(window=window, device=self.session.selection.device, request=request, page=page))

    def _entered(self, page: int) -> None:
        """The table of the request, unless something else is looked at on purpose."""
        shown = self._shown
        held = shown is not None and page < len(shown.pages) and int(shown.pages.owner[page]) >= 0
        if held and self.side.key == "figures":
            self.side.set_key("table")
            self._side_chosen("table")

    def _table_row(self, row: int) -> None:
        content = self.table.content
        if isinstance(content, PageRows):
            self.session.select(self.session.selection.but(page=int(content.table.block[row])))

    def _side_chosen(self, key: str) -> None:
        self._stack_of_sides.setCurrentIndex([name for name, _ in _SIDES].index(key))
        self._want(tree=key == "tree")

    def _step(self, direction: int, far: bool) -> None:
        """To the end of the iteration before or after, by page events where there are no iterations."""
        shown = self._shown
        if shown is None:
            return
        times = shown.trace["iterations"]["end"]
        times = times if len(times) else shown.trace.index(PageLog).time
        at = int(np.searchsorted(times, shown.time, "right" if direction > 0 else "left"))
        at += direction * (_FAR if far else 1) - (direction > 0)
        self.scrubber.play(False)
        self.seek(int(times[min(max(at, 0), len(times) - 1)]))

    def _played(self, on: bool) -> None:
        self.play.setChecked(on)
        self.play.setText("Stop" if on else "Play")


def _goes_on(before: Trace, now: Trace) -> bool:
    """Whether one is the other, grown."""
    return now.generation > before.generation and now.info.paths == before.info.paths


def _pages(shown: Moment) -> list[tuple[Cell, ...]]:
    pages, ids = shown.pages, shown.trace["requests"]["request"]
    return [
        (
            page,
            _STATUS[int(pages.status[page])],
            int(pages.refs[page]),
            int(ids[pages.owner[page]]) if pages.owner[page] >= 0 else None,
            int(pages.since[page]) if pages.status[page] else None,
        )
        for page in range(len(pages))
    ]
