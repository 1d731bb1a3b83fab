"""The workload of a recording: what it is told, what it says, how it is set, what the probes bring in and lose."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from inspector import units
from inspector.trace.selection import Selection, Window
from ui.export import Rows
from ui.questions import Failure, Question
from ui.run.child import State as RunState
from ui.run.facts import RunFacts, run_facts
from ui.run.form import Form
from ui.run.middle import Middle
from ui.run.nsys_button import NsysButton
from ui.run.options import Option, from_argv, read_options
from ui.run.probe_rows import ProbeRows
from ui.run.tap_buttons import TapButtons
from ui.theme import GRID
from ui.views.view import Host, State, View
from ui.widgets.elided import Elided
from ui.widgets.table import TableView

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

_ABOUT = "A small language model with in-flight batching and a paged KV cache, run on this machine and recorded."
_ABOUT_SHORT = "A small language model, run on this machine and recorded."
_PAUSE = "Let the engine stand still until it is to go on; the recording goes on, and so does the picture"
_GO_ON = "Let the engine make iterations again, and show them: a held picture is resumed"
_COLOURS = {RunState.RUNNING: "accent", RunState.FAILED: "wrong", RunState.PAUSED: "doubt"}


class Run(View):
    """Shows the run of this window, or what is known of the run that an opened trace is of; where there is neither, the
    engine's options and a way to start.

    `wanted(what, options)`: what is demo, again, launch, attach, stop or save; options for demo are its arguments.
    """

    ID: ClassVar[str] = "run"
    TITLE: ClassVar[str] = "Run"

    wanted = Signal(str, list)

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(host, parent)
        self.child = host.child
        self.form = Form(self.theme, "Options of the built-in engine")
        self._options: tuple[Option, ...] = ()
        self._answer: ProbeRows | None = None
        self._choosing = False
        self._scale = self.theme.scale
        self.paint_background()
        self._pages = QStackedWidget()
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._pages)
        self._pages.addWidget(self._make_choice())
        self._pages.addWidget(self._make_running())
        self.child.changed.connect(self._changed)
        self.child.ticked.connect(self._tick)
        self.child.written.connect(self.output.add)
        self._show_content()
        self._changed()
        self.retheme()

    # What a view does.

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """The newest row of each probe, and the configuration; not of a trace that a run goes on beside."""
        if not self._is_of_run(trace) and self.child.is_alive:
            return None
        return Question(run_facts, (trace,), ("run", trace.info.paths, trace.generation, id(trace)))

    def show_answer(self, answer: RunFacts) -> None:
        """Into the table and the sheet, and what was lost into plain sight."""
        self._answer = answer.probes
        self.probes.set_content(answer.probes, "", False, "probes")
        self.middle.show_configured(answer.configured)
        self._probes_box.setVisible(self._has_run or len(answer.probes) > 0)
        self._tick()

    def rows_for_copy(self) -> Rows | None:
        """The configuration where it is in sight, unless the focus is in the table of probes; else that table."""
        if self._answer is None:
            return None
        settings = self.middle.sheet.rows() if self.middle.shows_settings and not self.probes.hasFocus() else None
        return settings if settings is not None else self.probes.rows(bool(self.probes.selected_rows()))

    def retheme(self) -> None:
        """Type and colours anew."""
        for label in (self._choice_title, self._knobs_title, self._probes_title):
            label.setFont(self.theme.font("strong"))
        self._title.retheme()
        self.middle.retheme()
        self.probes.retheme()
        if self._options and self._scale != self.theme.scale:
            # Colours come to fields by themselves, sizes do not.
            self._scale = self.theme.scale
            self.form.set_options(self._options, self.form.values())
            self._show_knobs(self.knobs.values())
        self._changed()

    def take_focus(self) -> None:
        """To the button that starts; of a run to its output or its configuration, where no key does harm."""
        shown: QWidget = self.middle.sheet if self.middle.shows_settings else self.output.text
        target = self._start if self._pages.currentIndex() == 0 else shown
        target.setFocus(Qt.FocusReason.OtherFocusReason)

    def refresh(self) -> None:
        """Ask for the engine's options too, once they can be seen."""
        if self.isVisible() and not self._options:
            self.host.asker.ask(
                ("options", self), Question(read_options, (), "options"), self._know_options, self._no_options
            )
        super().refresh()

    def _trace_changed(self) -> None:
        # A run has something to show before there is a trace, and after it was closed.
        self._choosing, self._answer = False, None
        self.middle.show_configured(None)
        super()._trace_changed()
        self._show_content()
        self._changed()
        if self.session.trace is None:
            self.refresh()

    def _show_content(self) -> None:
        self.state = State.ANSWER
        self._stack.setCurrentWidget(self.content)

    # The two pages.

    def _make_choice(self) -> QWidget:
        page = QWidget()
        self._choice_title = self._heading("Built-in engine")
        self._choice_note = Elided(self.theme)
        self._choice_note.set_text(_ABOUT, _ABOUT_SHORT)
        self._choice_note.setObjectName("muted")
        self._start = self._button("Start", "Start the built-in engine", self._start_demo, "primary")
        reset = self._button("Defaults", "Back to the engine's defaults", self._reset)
        launch = self._button(
            "Launch a command…", "Record any command (Ctrl+L)", lambda: self.wanted.emit("launch", [])
        )
        attach = self._button("Attach…", "Attach to a server (Ctrl+T)", self._ask_to_attach)
        self._back = self._button("", "", lambda: self._choose(False))
        head = QHBoxLayout()
        head.addWidget(self._choice_title)
        head.addWidget(self._choice_note, 1)
        for button in (self._back, launch, attach, reset, self._start):
            head.addWidget(button)
        layout = QVBoxLayout(page)
        layout.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        layout.setSpacing(GRID)
        layout.addLayout(head)
        layout.addWidget(self.form, 1)
        return page

    def _make_running(self) -> QWidget:
        page = QWidget()
        self._dot, self._title, self._state = QLabel("●"), Elided(self.theme, "strong", "strong"), QLabel()
        self._state.setObjectName("muted")
        self._lost, self._records = QLabel(), QLabel()
        self._records.setObjectName("muted")
        self._pause = self._button("", "", self._toggle_pause)
        self._save = self._button(
            "Save…", "Copy the recording elsewhere (Ctrl+S)", lambda: self.wanted.emit("save", [])
        )
        self._stop = self._button("Stop", "End the run and close its recording", lambda: self.wanted.emit("stop", []))
        self._again = self._button("Run again", "The same once more", lambda: self.wanted.emit("again", []), "primary")
        self._attach = self._button(
            "Attach…", "Attach again, with another address, token or certificate authority", self._ask_to_attach
        )
        self._new = self._button("New run…", "Choose what to run", lambda: self._choose(True))
        head = QHBoxLayout()
        head.setSpacing(GRID)
        head.addWidget(self._dot)
        head.addWidget(self._title, 1)
        for label in (self._state, self._records, self._lost):
            head.addWidget(label)
            head.addSpacing(GRID)
        for button in (self._pause, self._save, self._stop, self._new, self._attach, self._again):
            head.addWidget(button)
        self._why = QLabel()
        self._why.setObjectName("wrong")
        self._why.setWordWrap(True)
        self._why.setTextFormat(Qt.TextFormat.PlainText)
        self._why.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._knobs_title = self._heading("Change while it runs")
        self.knobs = Form(self.theme, "Knobs", heads=False)
        self.knobs.changed.connect(self._turn)
        self.middle = Middle(self.theme)
        self.output = self.middle.output
        self._probes_title = self._heading("Probes")
        self.probes = TableView(self.theme, "Probes")
        self.taps = TapButtons(self.child.tell)
        self.nsys = NsysButton(self.child.tell)
        probes = QWidget()
        below = QVBoxLayout(probes)
        below.setContentsMargins(0, 0, 0, 0)
        below.setSpacing(GRID // 2)
        below.addWidget(self.probes, 1)
        below.addWidget(self.taps)
        below.addWidget(self.nsys, 0, Qt.AlignmentFlag.AlignLeft)
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._split.setChildrenCollapsible(False)
        self._knobs_box = _titled(self._knobs_title, self.knobs, left=0)
        self._probes_box = _titled(self._probes_title, probes)
        for widget in (self._knobs_box, self.middle, self._probes_box):
            self._split.addWidget(widget)
        for at, share in enumerate((0, 3, 2)):
            self._split.setStretchFactor(at, share)
        self._split.setSizes([self.theme.px(each) for each in (304, 560, 440)])
        self._split.setHandleWidth(1)
        layout = QVBoxLayout(page)
        layout.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        layout.setSpacing(GRID)
        layout.addLayout(head)
        layout.addWidget(self._why)
        layout.addWidget(self._split, 1)
        return page

    def _heading(self, text: str) -> QLabel:
        label = QLabel(text)
        label.setFont(self.theme.font("strong"))
        return label

    def _button(self, text: str, tip: str, does: Any, style: str = "") -> QPushButton:
        button = QPushButton(text)
        button.setObjectName(style)
        button.setToolTip(tip)
        button.clicked.connect(lambda: does())
        return button

    # What happens.

    def _changed(self) -> None:
        run, state = self.child, self.child.state
        if state is RunState.STARTING and not self.child.lines.count:
            self._choosing, self._answer = False, None
            self.output.clear()
            self._show_knobs()
        self._back.setVisible(self._has_run or self.session.trace is not None)
        self._back.setText("Last run" if self._has_run else "This trace")
        self._back.setToolTip("Back to the run that was" if self._has_run else "Back to what is known of the trace")
        there = self._has_run or self.session.trace is not None
        self._pages.setCurrentIndex(1 if there and not (self._choosing and not run.is_alive) else 0)
        self.middle.show_output(self._has_run)
        for widget in (self._dot, self._pause, self._save, self._stop, self._again):
            widget.setVisible(self._has_run)
        if run.launch is None or not self._has_run:
            self._of_trace()
            return
        self._title.set_text(run.launch.title)
        self._title.setToolTip(f"{' '.join(run.launch.argv)}\n{run.launch.folder}")
        self._pause.setVisible(run.launch.has_knobs and run.is_alive)
        paused = state is RunState.PAUSED
        self._pause.setText("Go on" if paused else "Pause workload")
        self._pause.setToolTip(_GO_ON if paused else _PAUSE)
        self._pause.setEnabled(state in (RunState.RUNNING, RunState.PAUSED))
        self._stop.setVisible(run.is_alive)
        self._stop.setText("Stop now" if state is RunState.STOPPING else "Stop")
        self._again.setVisible(not run.is_alive)
        self._new.setVisible(not run.is_alive)
        self._attach.setVisible(not run.is_alive and run.launch.kind == "attach")
        self._allow_knobs()
        why = self._reason()
        self._why.setText(why)
        self._why.setVisible(bool(why))
        self._dot.setStyleSheet(f"color: {self.theme.color(_COLOURS.get(state, 'faint')).name()}")
        self._tick()

    @property
    def _has_run(self) -> bool:
        """Whether the run of this window is what is shown: one that goes on, or the one that is open."""
        trace, run = self.session.trace, self.child
        if run.launch is None or run.state is RunState.NONE:
            return False
        return run.is_alive or trace is None or self._is_of_run(trace)

    def _of_trace(self) -> None:
        """The head over what is known of a trace that was opened."""
        trace = self.session.trace
        self._new.setVisible(True)
        self._why.setVisible(False)
        self._knobs_box.setVisible(False)
        self.middle.indent(False)
        if trace is not None:
            info = trace.info
            self._title.set_text(PurePath(info.paths[0]).name if info.paths else info.kind)
            self._title.setToolTip("\n".join(info.paths))
        self._tick()

    def _reason(self) -> str:
        run = self.child
        if run.state is not RunState.FAILED:
            return ""
        # What the recorder says of its own work is no reason.
        ours = f"inflight: {run.launch.folder}:" if run.launch is not None else ""
        last = "\n".join([line for line in run.lines.last if not line.startswith(ours)][-4:])
        code = run.code or 0
        how = f"It was ended by signal {-code}" if code < 0 else f"It ended with exit code {code}"
        return run.trouble or (f"{how}. Its last lines:\n{last}" if last else f"{how} and wrote nothing.")

    def _tick(self) -> None:
        run, answer = self.child, self._answer
        self.taps.show_state(answer, run.is_alive)
        self.nsys.show_state(answer, run.is_alive)
        trace = self.session.trace
        if self._has_run or trace is None:
            self._state.setText(f"{run.state.value} · {_clock(run.elapsed_ns)}")
        else:
            self._state.setText(f"{trace.info.kind} · {units.time(trace.end_ns)}")
        self._records.setText(f"{units.count(answer.records)} records" if answer is not None else "")
        lost = answer.lost if answer is not None else 0
        told = answer is not None and (self._has_run or len(answer) > 0)
        self._lost.setText(f"{lost:,} lost" if lost else "nothing lost" if told else "")
        self._lost.setToolTip("\n".join(answer.losses) if answer is not None else "")
        style = "wrong" if lost else "muted"
        if self._lost.objectName() != style:
            self._lost.setObjectName(style)
            self._lost.style().unpolish(self._lost)
            self._lost.style().polish(self._lost)

    def _toggle_pause(self) -> None:
        paused = self.child.state is RunState.PAUSED
        self.child.pause(not paused)
        if paused:
            # Who lets it go on wants to see what comes.
            self.session.release()

    def _turn(self, name: str, value: Any) -> None:
        self.child.tell({"set": {name: value}})

    def _ask_to_attach(self) -> None:
        self.wanted.emit("attach", [])

    def _choose(self, on: bool) -> None:
        self._choosing = on
        self._changed()

    def _start_demo(self) -> None:
        wrong = self.form.wrong()
        if wrong:
            self._choice_note.set_text(f"The engine would not take: {', '.join(wrong)}")
            return
        self.wanted.emit("demo", self.form.argv())

    def _reset(self) -> None:
        self.form.reset()

    def _know_options(self, options: tuple[Option, ...]) -> None:
        self._options = options
        self.form.set_options(options, {})
        self._show_knobs()

    def _no_options(self, failure: Failure) -> None:
        self._choice_note.set_text(failure.line)

    def _show_knobs(self, values: dict[str, Any] | None = None) -> None:
        """Fields for what can change, with `values`, else as the run was started."""
        launch = self.child.launch
        if launch is not None and launch.has_knobs:
            live = [option for option in self._options if option.live]
            self.knobs.set_options(live, values or from_argv(self._options, launch.own))
        self._allow_knobs()

    def _allow_knobs(self) -> None:
        run = self.child
        self.knobs.setEnabled(run.state in (RunState.RUNNING, RunState.PAUSED))
        has_knobs = run.launch is not None and run.launch.has_knobs and bool(self.knobs.values())
        shown = has_knobs and run.is_alive
        self._knobs_box.setVisible(shown)
        self.middle.indent(shown)

    def _is_of_run(self, trace: Trace) -> bool:
        launch = self.child.launch
        return launch is not None and trace.info.paths == (str(launch.folder),)


def _titled(title: QLabel, widget: QWidget, left: int = 2 * GRID) -> QWidget:
    box = QWidget()
    layout = QVBoxLayout(box)
    layout.setContentsMargins(left, 0, GRID - left // 2, 0)
    layout.setSpacing(GRID // 2)
    layout.addWidget(title)
    layout.addWidget(widget, 1)
    return box


def _clock(ns: int) -> str:
    seconds = ns // 1_000_000_000
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
