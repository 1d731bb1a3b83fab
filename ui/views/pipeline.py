"""Pipeline: stages as rows, micro-batches as cells, bubbles with their cause, and their share against the ideal."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from inspector import units
from inspector.analysis.alignment import Alignment
from inspector.analysis.configured import where
from inspector.analysis.pipeline import IDLE, Pipeline, PipelineFigures
from inspector.configuration.settings import BY_NAME
from inspector.picture.palette import HUES, INKS, Ink, ink
from inspector.picture.pipeline import IDLE_INKS, PipelinePicture, pipeline_picture
from inspector.trace.schema import WORK_TABLES
from inspector.trace.selection import Selection, Window
from inspector.trace.trace import Trace
from ui.export import Rows
from ui.pipeline.canvas import PipelineCanvas
from ui.questions import Question
from ui.theme import DARK, LIGHT
from ui.views.view import Host, Need, State, View
from ui.widgets.elided import Elided
from ui.widgets.message import Message
from ui.widgets.swatches import Entry, Swatches

_MARGIN = 0.1
_BETWEEN = Ink("between iterations", LIGHT.sunken, DARK.sunken)
_CLOSER = "Look at the iteration that is selected, else at the one in the middle (double click)"
_NO_STAGES = (
    "A pipeline needs two. Open the traces of all ranks together, or record an engine that has stages: "
    "inflight demo --stages 2"
)


class Answer(NamedTuple):
    """What is shown: the picture of the window, and how well the clocks agree."""

    picture: PipelinePicture
    alignment: Alignment


def ask(trace: Trace, window: Window, columns: int) -> Answer:
    """Answer the view's question."""
    return Answer(pipeline_picture(trace, window, columns), trace.index(Alignment))


class PipelineView(View):
    """Figures are those of the span in view."""

    ID: ClassVar[str] = "pipeline"
    TITLE: ClassVar[str] = "Pipeline"
    NEEDS: ClassVar[tuple[Need, ...]] = (
        Need(("stage_work", *WORK_TABLES), "No pipeline to show: neither stages nor work on devices were recorded."),
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._answer: Answer | None = None
        self.bubble = QLabel()
        self.against = Elided(host.theme)
        self.notes = QLabel()
        self.legend = Swatches(host.theme, "Colours of the pipeline")
        self.canvas = PipelineCanvas(host.theme)
        self.nothing = Message(host.theme)
        self._pages = QStackedWidget()
        self.closer = QPushButton("Show one iteration")
        self.closer.setToolTip(_CLOSER)
        self.closer.clicked.connect(self.show_iteration)
        self.canvas.looked.connect(self.session.look)
        # The canvas has its width later than the view.
        self.canvas.resized.connect(self.refresh)
        self.canvas.picked.connect(self._picked)
        self.canvas.entered.connect(self._entered)
        self.canvas.stepped.connect(self._step)
        self._lay_out()

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """The stages in the span in view."""
        columns = self.canvas.columns()
        return Question(ask, (trace, window, columns), (id(trace), trace.generation, window, columns))

    def show_answer(self, answer: Answer) -> None:
        """Paint the picture, say the figures."""
        self._answer = answer
        picture, figures = answer.picture, answer.picture.figures
        self.canvas.set_window(self.session.window, self.session.selection.iteration)
        self.canvas.show_picture(picture)
        self.legend.set_entries(legend(picture))
        self._pages.setCurrentIndex(0 if picture.num_stages > 1 else 1)
        if picture.num_stages < 2:
            self.nothing.say(*no_pipeline(picture))
        what = "Bubbles" if picture.source == "stage records" else "Idle"
        self.bubble.setText(f"{what} {100 * figures.bubble:.1f} %" if figures.active_ns else "Nothing in view")
        trace = self.session.trace
        self.against.set_text(*against(figures, trace.info.basis if trace is not None else "measured"))
        self.against.setToolTip(self.against.full)
        said = notes(answer, self.session.trace)
        self.notes.setText(" ".join(said))
        several = len(picture.spans) > 1
        self.closer.setEnabled(several)
        how = "One iteration is in view" if len(picture.spans) else "No iteration is in view"
        self.closer.setToolTip(_CLOSER if several else f"{how}: zoom out first")
        self.notes.setVisible(bool(said))

    def rows_for_copy(self) -> Rows | None:
        """One row per iteration in view."""
        if self._answer is None:
            return None
        picture = self._answer.picture
        spans, stages = picture.spans, picture.num_stages
        heads = ("iteration", "start_ns", "end_ns", "stages", "micro_batches", "busy_ns", "bubble", "equal", "unequal")
        bubble = spans.bubble(stages)
        return Rows(
            heads,
            [
                (
                    int(spans.iteration[row]),
                    int(spans.start[row]),
                    int(spans.end[row]),
                    stages,
                    int(spans.micro_batches[row]) or None,
                    int(spans.busy[row]),
                    float(bubble[row]),
                    _or_none(float(spans.ideal[row])),
                    _or_none(float(spans.unequal[row])),
                )
                for row in range(len(spans))
            ],
        )

    def refresh(self) -> None:
        """Also follows the span in view and the iteration at once, with the old picture."""
        super().refresh()
        if self.state is State.ANSWER:
            self.canvas.set_window(self.session.window, self.session.selection.iteration)

    def take_focus(self) -> None:
        """To the picture."""
        self.canvas.setFocus(Qt.FocusReason.OtherFocusReason)

    def retheme(self) -> None:
        """Type sizes anew."""
        self.bubble.setFont(self.theme.font("strong"))
        self.against.retheme()
        self.legend.retheme()
        self.update()

    def _lay_out(self) -> None:
        px = self.theme.px
        self.paint_background()
        self.against.setObjectName("muted")
        self.notes.setObjectName("small")
        self.notes.setWordWrap(True)
        self.notes.setTextFormat(Qt.TextFormat.PlainText)
        self.notes.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        head = QHBoxLayout()
        head.setSpacing(px(8))
        head.addWidget(self.bubble)
        head.addWidget(self.against, 1)
        head.addWidget(self.closer)
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(px(8), px(8), px(8), px(4))
        layout.setSpacing(px(4))
        layout.addLayout(head)
        layout.addWidget(self.legend)
        layout.addWidget(self.canvas, 1)
        layout.addWidget(self.notes)
        self._pages.addWidget(page)
        self._pages.addWidget(self.nothing)
        whole = QVBoxLayout(self.content)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self._pages)
        self.retheme()

    def _picked(self, iteration: int | None) -> None:
        self.session.select(self.session.selection.but(iteration=iteration))

    def _entered(self, iteration: int) -> None:
        trace = self.session.trace
        if trace is None:
            return
        spans = trace.index(Pipeline).spans
        rows = np.flatnonzero(spans.iteration == iteration)
        if len(rows):
            low, high = int(spans.start[rows[0]]), int(spans.end[rows[0]])
            margin = max(round((high - low) * _MARGIN), 1)
            self.session.look(Window(low - margin, high + margin))

    def hold(self) -> None:
        """Hold the picture of a run, or resume it."""
        self.session.hold()

    def show_iteration(self) -> None:
        """Look at the iteration that is selected, else at one in the middle of what is in view."""
        picture = self._answer.picture if self._answer is not None else None
        if picture is None or not len(picture.spans):
            return
        iteration = self.session.selection.iteration
        if iteration not in picture.spans.iteration.tolist():
            iteration = int(picture.spans.iteration[len(picture.spans) // 2])
            self._picked(iteration)
        if iteration is not None:
            self._entered(iteration)

    def _step(self, direction: int) -> None:
        """To the iteration before or after; the first in view where none is selected."""
        picture = self._answer.picture if self._answer is not None else None
        trace = self.session.trace
        if picture is None or trace is None:
            return
        spans = trace.index(Pipeline).spans
        rows = np.flatnonzero(spans.iteration == self.session.selection.iteration)
        row = int(rows[0]) + direction if len(rows) else int(np.searchsorted(spans.start, self.session.window.start))
        if 0 <= row < len(spans):
            self._picked(int(spans.iteration[row]))
            low, high = int(spans.start[row]), int(spans.end[row])
            window = self.session.window
            if low < window.start or high > window.end:
                half = max(window.length, high - low) // 2
                self.session.look(Window((low + high) // 2 - half, (low + high) // 2 + half), False)


def against(figures: PipelineFigures, basis: str) -> tuple[str, ...]:
    """What the share of bubbles rests on and is to be compared with, from long to short."""
    if not figures.active_ns:
        return ("no stage worked in what is in view",)
    if not math.isfinite(figures.ideal):
        span = units.time(figures.active_ns)
        return (f"{basis}, of {span} in which iterations ran; micro-batches are not known",)
    equal, unequal = f"{100 * figures.ideal:.1f} %", f"{100 * figures.unequal:.1f} %"
    many = f"{units.time(figures.active_ns)} in {figures.iterations:,} iteration" + "s" * (figures.iterations != 1)
    compared = f"Equal stages would have {equal}, cells as unequal as these at least {unequal}"
    return (
        f"{basis}, of {many} in view. {compared}; {_rest(figures)}",
        f"{basis}, of {many}. {compared}",
        f"{basis}. Equal stages would have {equal}, as unequal as these {unequal}",
        f"equal stages {equal}, these {unequal}",
    )


def no_pipeline(picture: PipelinePicture) -> tuple[str, str]:
    """Why there is none to show, and what to do about it."""
    if not picture.num_stages:
        return "No pipeline to show: there is one device, and no stages were recorded.", _NO_STAGES
    contention = picture.figures.contention
    if not math.isfinite(contention):
        return "No pipeline to show: there is one stage.", _NO_STAGES
    waited = f"In {100 * contention:.1f} % of the time of its passes in view its thread had no processor."
    return "No pipeline to show: there is one stage.", f"{waited} {_NO_STAGES}"


def _rest(figures: PipelineFigures) -> str:
    """Why it is not what cells as unequal as these have at least."""
    # As they are shown: what makes no digit needs no reason.
    measured, least = round(100 * figures.bubble, 1), round(100 * figures.unequal, 1)
    if measured > least:
        return "the rest is hand-over and late starts"
    if measured == least:
        return "nothing is lost beside"
    if figures.overlapping:
        return "it is less, since iterations overlap and fill each other's bubbles"
    # An iteration that has its stages for itself cannot have less; a part of one can.
    return "it is less, since only a part of an iteration is in view" if figures.cut else "it is less"


def legend(picture: PipelinePicture) -> list[Entry]:
    """Shares of the stages' time by what they were, largest first, with their colours."""
    figures = picture.figures
    area = figures.active_ns * picture.num_stages
    idle = figures.idle_ns.sum(axis=0)
    busy = HUES if picture.pieces is not None and picture.source == "stage records" else (INKS[ink("busy")],)
    label = "micro-batches (hues in turn)" if len(busy) > 1 else "busy"
    if not area:
        return []
    entries: list[Entry] = [(f"{label} {units.share(int(figures.busy_ns.sum()), area)}", busy)]
    for cause in np.argsort(-idle, kind="stable").tolist():
        if idle[cause]:
            entries.append((f"{IDLE[cause]} {units.share(int(idle[cause]), area)}", (INKS[IDLE_INKS[cause]],)))
    if math.isfinite(figures.contention):
        lost = f"of the busy time, {100 * figures.contention:.1f} % without a processor"
        entries.append((lost, (INKS[ink("no processor")],)))
    if figures.between_ns:
        seen = figures.active_ns + figures.between_ns
        entries.append((f"between iterations {units.share(figures.between_ns, seen)} of what is in view", (_BETWEEN,)))
    return entries


def notes(answer: Answer, trace: Trace | None) -> list[str]:
    """What cannot be said, and how well clocks agree, a sentence each."""
    picture, clocks = answer.picture, answer.alignment
    said = []
    figures = picture.figures
    if picture.source == "devices" and picture.num_stages:
        said.append(
            "Devices stand for stages: this trace does not say which layers a device holds. "
            f"{ranks_words(trace)} Collectives alone count as waiting."
        )
    if math.isfinite(figures.contention):
        cores = _cores(trace)
        said.append(
            f"Contention: in {100 * figures.contention:.1f} % of the cells' time their threads had no processor. That "
            "counts as busy: it makes cells longer, and is in no bubble."
        )
        if cores is not None and cores < picture.num_stages:
            share = 100 * cores / picture.num_stages
            said.append(
                f"{cores} cores carry {picture.num_stages} stages: at most {share:.0f} % can be busy at a time."
            )
    if clocks.files > 1 and not clocks.shared:
        said.append(
            "The files have no wall clock in common: each starts at 0, so times of different files do not compare."
        )
    elif clocks.matched:
        name = trace.device_name(clocks.device) if trace is not None else f"device {clocks.device}"
        said.append(
            f"Alignment: {name} leaves collectives {units.time(clocks.offset_ns)} from the first device (median of "
            f"{clocks.matched:,}; 9 in 10 within {units.time(clocks.spread_ns)} of that)."
        )
    elif clocks.files > 1:
        said.append("Alignment: by wall clock; no collectives to check it by, so its error is not known.")
    return said


def ranks_words(trace: Trace | None) -> str:
    """Whether devices can be stages, by what the configuration says of tensor and pipeline parallelism."""
    same = "all devices work on the same layers, and this is idle time, no pipeline bubble."
    config = trace.info.configuration.settings if trace is not None else {}
    sizes = [config[name] for name in ("tensor_parallel", "pipeline_parallel") if name in config]
    if not sizes:
        return f"With tensor parallelism {same}"
    told = ", ".join(f"{BY_NAME[each.name].title.lower()} {each.value} ({where(each)})" for each in sizes)
    known = {each.name: each.value for each in sizes}
    if known.get("pipeline_parallel") == 1:
        return f"By the configuration, {told}, {same}"
    if known.get("tensor_parallel") == 1:
        return f"By the configuration, {told}, each device is a stage."
    return f"By the configuration, {told}. Where tensor parallelism splits a layer, {same}"


def _cores(trace: Trace | None) -> int | None:
    """Processors of the machine, where the recording tells."""
    details = trace.info.details if trace is not None else {}
    text = next((details[key] for key in ("cores", "processors", "cpus") if key in details), "")
    number = text.split()[0] if text else ""
    return int(number) if number.isdecimal() and len(number) < 10 else None


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
