"""The schedule: which request did what in which iteration, how full the batch was, and how long requests waited."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QVBoxLayout

from inspector.picture.schedule import UNTOLD, Ask, Lives, SchedulePicture
from inspector.picture.schedule_axis import Span
from inspector.picture.schedule_tip import Place
from inspector.trace.selection import NOTHING, Selection, Window
from ui.export import Rows
from ui.questions import Question
from ui.schedule.answer import Answer, answer, scope
from ui.schedule.canvas import ScheduleCanvas
from ui.schedule.columns import Columns
from ui.schedule.figures import measures, static_words
from ui.schedule.legend import Legend
from ui.schedule.rows import schedule_rows
from ui.views.view import Host, Need, View
from ui.widgets.elided import Elided
from ui.widgets.measures import Measures
from ui.widgets.segments import Segments

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

_STEP, _FAR, _ROWS_PX = 0.15, 0.75, 48


class Schedule(View):
    """Strips of the batch over rows of requests, latencies beside them, figures above."""

    ID: ClassVar[str] = "schedule"
    TITLE: ClassVar[str] = "Schedule"
    NEEDS: ClassVar[tuple[Need, ...]] = (
        Need(
            ("iterations", "requests", "ranges"),
            "No schedule to show: neither iterations nor requests of an engine were recorded in this trace.",
        ),
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.answer: SchedulePicture | None = None
        self._process: int | None = None
        self.iterations = Columns()
        # The recording that columns and engine were chosen for, and its generation.
        self._recording: tuple[tuple[str, ...], int] = ((), 0)
        self._own = False
        # An iteration that was selected elsewhere and is still to be brought into sight.
        self._sought: int | None = None
        self.across = Segments("Columns", (("iterations", "Iterations"), ("time", "Time")))
        self.across.chosen.connect(lambda _: self.refresh())
        self.static = QPushButton("Static batching")
        self.static.setToolTip(
            "In the lower half of each row: what static batching would have done with the same arrivals, modelled"
        )
        self.waiting = QPushButton("Waiting")
        self.waiting.setToolTip(
            "Rows for requests that only wait in what is in view; the queue counts them in any case"
        )
        for button in (self.waiting, self.static):
            button.setCheckable(True)
            button.setObjectName("segment")
            for edge in ("first", "last"):
                button.setProperty(edge, True)
            button.toggled.connect(lambda _: self.refresh())
        self.engine = QComboBox()
        self.engine.setAccessibleName("Engine process")
        self.engine.activated.connect(self._engine_chosen)
        self.newest = QPushButton("Newest  End")
        self.newest.setToolTip("Go to the newest iteration and stay there")
        self.newest.setAccessibleName("Go to the newest iteration")
        self.newest.clicked.connect(self.follow_end)
        self.note, self.scope = Elided(host.theme), Elided(host.theme)
        self.measures = Measures(host.theme, "Batch and latency")
        self.legend = Legend(host.theme)
        self.canvas = ScheduleCanvas(host.theme)
        self.canvas.looked.connect(self._looked)
        self.canvas.scrolled.connect(self.refresh)
        self.canvas.picked.connect(self._picked)
        self.canvas.opened.connect(self._opened)
        self.canvas.ranged.connect(self._ranged)
        self.session.selection_changed.connect(self._selection_changed)
        self._lay_out()

    # Questions and answers.

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """The picture of what is in view, and the figures of the selected range."""
        span = self._span(window)
        top, bottom = self.canvas.rows_wanted()
        ask = Ask(span, top, bottom, self._process, self.static.isChecked(), self.waiting.isChecked())
        self.canvas.look(span)
        key = (id(trace), trace.generation, ask, selection.window)
        return Question(answer, (trace, ask, selection.window, not self.iterations.settled), key)

    def show_answer(self, answer: Answer) -> None:
        """Canvas, figures, notes."""
        picture, before = answer.picture, self.answer
        self.answer = picture
        if before is not None and self.iterations.forget(before.axis, picture.axis):
            # It shows other iterations than were asked for.
            self.refresh()
            return
        self._engines(answer.engines)
        if picture.axis is not None and not picture.ask.span.by_time:
            if self.canvas.overflows(picture.alive):
                self.iterations.begin(len(picture.axis.batches), self.session.live.is_on)
            self.iterations.settle((picture.ask.span.low, picture.ask.span.high), len(picture.axis.batches))
        self.canvas.show_picture(picture)
        self._seek(self._sought)
        self.canvas.look(self._span(self.session.window))
        self.canvas.select(self.session.selection)
        self.measures.say(measures(answer.figures))
        where = self.session.whole_words if self.session.selection.window is None else "selected range"
        self.scope.set_text(*scope(answer.figures, where))
        said = "\n".join((*picture.missing, *static_words(picture)))
        self.note.set_text(said.replace("\n", " · "))
        self.note.setToolTip(said)
        self.note.setVisible(bool(said))
        untold = bool((picture.cells == UNTOLD).any())
        self.legend.say(picture.static is not None, picture.fullest > 1, picture.steps is not None, untold)
        self.newest.setVisible(self.session.live.is_on and not self._follows())
        self.refresh()

    def rows_for_copy(self) -> Rows | None:
        """One row per request in view, with its times."""
        return schedule_rows(self.answer) if self.answer is not None else None

    def zoom_in(self) -> None:
        """Fewer columns."""
        self.canvas.zoom(1 / 1.35)

    def zoom_out(self) -> None:
        """More columns."""
        self.canvas.zoom(1.35)

    def pan_left(self) -> None:
        """Earlier."""
        self.canvas.pan(-_STEP * self.canvas.place.columns)

    def pan_right(self) -> None:
        """Later."""
        self.canvas.pan(_STEP * self.canvas.place.columns)

    def pan_left_far(self) -> None:
        """Much earlier."""
        self.canvas.pan(-_FAR * self.canvas.place.columns)

    def pan_right_far(self) -> None:
        """Much later."""
        self.canvas.pan(_FAR * self.canvas.place.columns)

    def scroll_up(self) -> None:
        """Requests before."""
        self.canvas.scroll_by(-self.theme.px(_ROWS_PX))

    def scroll_down(self) -> None:
        """Requests after."""
        self.canvas.scroll_by(self.theme.px(_ROWS_PX))

    def fit(self) -> None:
        """All iterations."""
        if self._by_time:
            self.session.fit()
        elif self.answer is not None and self.answer.axis is not None:
            self._look_at(0.0, float(len(self.answer.axis.batches)))

    def fit_selection(self) -> None:
        """The selected request's life, the selected range, else everything."""
        life = self._life(self.session.selection.request)
        if life is not None:
            margin = max((life[1] - life[0]) * 0.1, 1.0)
            self._look_at(life[0] - margin, life[1] + margin)
        elif self.session.selection.window is not None and self._by_time:
            self.session.look(self.session.selection.window)
        else:
            self.fit()

    def next_event(self) -> None:
        """The next iteration."""
        self._step_iteration(1)

    def previous_event(self) -> None:
        """The iteration before."""
        self._step_iteration(-1)

    def follow_end(self) -> None:
        """To the newest iteration and the newest time, and on with them."""
        self.session.follow_end()
        if self.answer is None or self.answer.axis is None:
            return
        if not self._by_time:
            self.iterations.follow()
            self.refresh()
        self.canvas.scroll_to_end()

    def hold(self) -> None:
        """Hold the picture of a run, or resume it."""
        self.session.hold()

    def take_focus(self) -> None:
        """To the canvas."""
        self.canvas.setFocus(Qt.FocusReason.OtherFocusReason)

    def retheme(self) -> None:
        """Type sizes anew."""
        self.measures.retheme()
        self.legend.retheme()
        self.canvas.retheme()
        self.update()

    @property
    def _by_time(self) -> bool:
        return self.across.key == "time"

    def _span(self, window: Window) -> Span:
        columns = self.canvas.columns
        if self._by_time:
            return Span(True, float(window.start), float(max(window.end, window.start + 1)), columns)
        low, high = self.iterations.span
        return Span(False, low, high, columns)

    def _look_at(self, low: float, high: float) -> None:
        self._looked(Span(self._by_time, low, high, self.canvas.columns), True)

    def _looked(self, span: Span, remember: bool) -> None:
        if span.by_time:
            self.session.look(Window(round(span.low), round(span.high)), remember)
            return
        self.iterations.look(span.low, span.high)
        self.refresh()
        self.newest.setVisible(self.session.live.is_on and not self._follows())

    def _follows(self) -> bool:
        """Whether the newest iteration is in view."""
        if self._by_time:
            return self.session.window.end >= self.session.whole.end
        return self.iterations.follows

    # Selecting.

    def _picked(self, place: Place | None) -> None:
        if place is None or self.answer is None or self.answer.axis is None:
            self.session.select(NOTHING)
            return
        trace, axis = self.answer.trace, self.answer.axis
        request = int(trace["requests"]["request"][place.request]) if place.request >= 0 else None
        iteration = int(axis.batches.number[place.ordinal]) if place.ordinal >= 0 else None
        process = axis.batches.process if self.engine.count() > 1 else None
        self._own = True
        self.session.select(
            Selection(
                window=self.session.selection.window,
                device=self.session.selection.device,
                request=request,
                iteration=iteration,
                process=process,
            )
        )
        self._own = False

    def _opened(self, place: Place) -> None:
        if place.request >= 0:
            self.fit_selection()

    def _ranged(self, low: float, high: float) -> None:
        axis = self.answer.axis if self.answer is not None else None
        if axis is None or not len(axis.batches):
            return
        if self._by_time:
            window = Window(round(low), round(high))
        else:
            last = len(axis.batches) - 1
            first, end = min(max(int(low), 0), last), min(max(int(np.ceil(high)) - 1, 0), last)
            window = Window(int(axis.batches.start[first]), int(axis.batches.end[max(first, end)]))
        self.session.select(self.session.selection.but(window=window))

    def _seek(self, iteration: int | None) -> None:
        """Bring the requests of an iteration into sight, now or when its picture is there."""
        # Forgotten first: bringing it can ask for, and be answered with, other rows at once.
        self._sought = None
        if iteration is not None and not self.canvas.bring(iteration):
            self._sought = iteration

    def _selection_changed(self) -> None:
        selection = self.session.selection
        self.canvas.select(selection)
        self._seek(None if self._own else selection.iteration)
        if self._own or self.answer is None or self.answer.axis is None or self._by_time:
            return
        # Chosen elsewhere: it comes into view.
        axis, (low, high) = self.answer.axis, self.iterations.span
        wanted = -1 if selection.iteration is None else selection.iteration
        found = np.flatnonzero(axis.batches.number == wanted)
        if len(found) and not low <= float(found[0]) < high:
            self._look_at(float(found[0]) - (high - low) / 2, float(found[0]) + (high - low) / 2)
        elif selection.request is not None:
            life = self._life(selection.request)
            if life is not None and (life[1] <= low or life[0] >= high):
                self.fit_selection()

    def _step_iteration(self, step: int) -> None:
        axis = self.answer.axis if self.answer is not None else None
        if axis is None or not len(axis.batches):
            return
        numbers, now = axis.batches.number, self.session.selection.iteration
        found = np.flatnonzero(numbers == now) if now is not None else np.empty(0, np.int64)
        first = int(axis.inside()[0])
        at = int(found[0]) + step if len(found) else first
        if 0 <= at < len(numbers):
            self.session.select(self.session.selection.but(iteration=int(numbers[at])))

    def _life(self, request: int | None) -> tuple[float, float] | None:
        """From arrival to end of a request, in places of the axis."""
        picture = self.answer
        if request is None or picture is None or picture.axis is None:
            return None
        found = np.flatnonzero(picture.trace["requests"]["request"] == request)
        if not len(found):
            return None
        axis = replace(picture.axis, span=replace(picture.axis.span, by_time=self._by_time))
        lives = Lives.of(picture.trace, axis, picture.steps)
        return float(lives.first[found[0]]), float(lives.last[found[0]])

    # Options and layout.

    def toggle_waiting(self) -> None:
        """Rows for those that only wait, or not."""
        self.waiting.toggle()

    def toggle_static(self) -> None:
        """Static batching beside it, or not."""
        self.static.toggle()

    def toggle_time(self) -> None:
        """Time or iterations across."""
        self.across.set_key("iterations" if self._by_time else "time")
        self.refresh()

    def _engine_chosen(self, at: int) -> None:
        self._process = self.engine.itemData(at)
        self.iterations = Columns()
        self.refresh()

    def _engines(self, engines: tuple[tuple[int, str], ...]) -> None:
        self.engine.setVisible(len(engines) > 1)
        if [self.engine.itemData(at) for at in range(self.engine.count())] != [process for process, _ in engines]:
            self.engine.clear()
            for process, name in engines:
                self.engine.addItem(name, process)

    def _trace_changed(self) -> None:
        trace = self.session.trace
        paths, generation = (trace.info.paths, trace.generation) if trace is not None else ((), 0)
        if paths != self._recording[0] or generation <= self._recording[1]:
            # Not a later generation of what was shown before.
            self.iterations, self._process, self.answer = Columns(), None, None
        self._recording = (paths, generation)
        super()._trace_changed()

    def _lay_out(self) -> None:
        px = self.theme.px
        self.paint_background()
        for label in (self.note, self.scope):
            label.setObjectName("muted")
        self.scope.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        tools = QHBoxLayout()
        tools.setSpacing(px(8))
        for widget in (self.across, self.waiting, self.static, self.engine, self.newest):
            tools.addWidget(widget)
        tools.addWidget(self.legend, 3)
        tools.addWidget(self.scope, 2)
        top = QVBoxLayout()
        top.setContentsMargins(px(8), px(8), px(8), 0)
        top.setSpacing(px(6))
        top.addLayout(tools)
        top.addWidget(self.measures)
        top.addWidget(self.note)
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(px(4))
        layout.addLayout(top)
        layout.addWidget(self.canvas, 1)
        self.note.hide()
        self.engine.hide()
        self.newest.hide()
