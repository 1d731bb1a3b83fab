"""The strip on top: how busy, why idle, what next, for the device and range that are selected."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QFrame, QGridLayout, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout

from inspector import units
from inspector.analysis.causes import CAUSES, EXPLANATIONS
from inspector.picture.labels import forms
from inspector.trace.schema import WORK_TABLES
from inspector.trace.selection import Selection, Window
from inspector.trace.trace import Trace
from ui.figures import Cause, Figures, figures
from ui.questions import Question
from ui.views.view import Host, Need, View
from ui.widgets.elided import Elided
from ui.widgets.figure import Figure

_MARGIN = 0.5
_ARROW = 44
_CPU_BUSY = (
    "There is no GPU: this is the measured wall time of forward passes on the processor, "
    "and it includes waiting for a core"
)


class Headline(View):
    """Three figures; the third leads to the gap that it names."""

    ID: ClassVar[str] = "headline"
    IN_ROUNDS: ClassVar[bool] = True
    TITLE: ClassVar[str] = "Busy, idle, next"
    NEEDS: ClassVar[tuple[Need, ...]] = (Need(WORK_TABLES, "No work on a device was recorded in this trace."),)

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._figures: Figures | None = None
        self._devices = QComboBox()
        self._devices.setAccessibleName("Device")
        # Else the longest name decides how narrow the window can be.
        self._devices.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._devices.setMinimumContentsLength(6)
        self._devices.activated.connect(self._device_chosen)
        self._device, self._range, self._trust = (Elided(host.theme) for _ in range(3))
        self._range.setObjectName("small")
        self._trust.setObjectName("small")
        self._whole = QPushButton("Whole trace")
        self._whole.setObjectName("link")
        self._whole.setAccessibleName("Figures of the whole trace")
        self._whole.clicked.connect(lambda: self.session.select(self.session.selection.but(window=None)))
        self._busy = Figure(host.theme, "GPU busy")
        self._cause = Figure(host.theme, "Largest cause of idle time")
        self._next = Figure(host.theme, "Look at next")
        self._next.followed.connect(self._follow)
        self._lay_out()

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """The figures of the device over the selected range."""
        device = self.session.device
        self._show_devices(trace)
        if device < 0:
            return None
        key = (id(trace), trace.generation, device, selection.window)
        return Question(figures, (trace, device, selection.window), key)

    def show_answer(self, answer: Figures) -> None:
        """Put the figures into words."""
        trace = self.session.trace
        if trace is None:
            return
        self._figures = answer
        found, basis = answer.busy, trace.info.basis
        length = units.time(found.span_ns)
        chosen = self.session.selection.window
        kind = trace.device_kind(self.session.device)
        self._busy.rename("CPU busy, wall time" if kind == "CPU" else f"{kind} busy")
        if chosen is None:
            said = f"{length}, first to last {kind} work"
        elif chosen.length == found.span_ns:
            said = f"selected range, {length}"
        else:
            said = f"selected range, {length} of it with {kind} work"
        self._range.set_text(said, said.removesuffix(f" with {kind} work"), f"{length} of {kind} work", length)
        self._range.setToolTip(f"{found.span.start:,} ns to {found.span.end:,} ns")
        self._whole.setVisible(chosen is not None)
        self._say_trust(answer)
        self._busy.say(
            units.share(found.busy_ns, found.span_ns),
            _beside_busy(answer),
            basis,
            tip=f"busy {found.busy_ns:,} ns of {found.span_ns:,} ns, idle {found.idle_ns:,} ns\n"
            f"kernels {units.time(found.kernel_ns)}, copies {units.time(found.copy_ns)}, "
            f"communication {units.time(found.communication_ns)} "
            f"({units.time(found.hidden_communication_ns)} of it beside other work)"
            + (f"\n{_CPU_BUSY}" if kind == "CPU" else "")
            + (f"\n{_waited(answer)}" if answer.worked_ns else ""),
        )
        if answer.cause is None or answer.next is None:
            self._cause.say("no idle time", "the device was busy all the time", basis)
            self._next.say("nothing", "there is no gap to look at", basis)
            return
        cause, following = answer.cause, answer.next
        name = CAUSES[cause.cause]
        self._cause.say(
            f"{name} {units.share(cause.total_ns, found.idle_ns)}",
            _from_long(units.time(cause.total_ns), f" of {units.time(found.idle_ns)} idle", f", {host_words(cause)}"),
            basis,
            tip=f"{cause.total_ns:,} ns of {found.idle_ns:,} ns idle"
            + (f"; {cause.host_ns:,} ns of it in {cause.host}" if cause.host else "")
            + f"\n{EXPLANATIONS[name]}",
        )
        before = following.before or "the end"
        self._next.say(
            f"{units.time(following.cause_ns)} {CAUSES[following.cause]}",
            (f"in the costliest gap, before {before}", *(f"before {form}" for form in forms(before)), "costliest gap"),
            basis,
            link="Show it",
            tip=f"gap of {following.span.length:,} ns from {following.span.start:,} ns, "
            f"{following.cause_ns:,} ns of it {CAUSES[following.cause]}\nbefore {before}",
        )

    @property
    def text(self) -> str:
        """All that the strip says."""
        labels = (self._device.full, self._range.full, self._trust.full)
        return "\n".join([*labels, *(figure.text for figure in (self._busy, self._cause, self._next))])

    def retheme(self) -> None:
        """Type sizes anew."""
        self._device.setFont(self.theme.font("strong"))
        # The line keeps the height of its link, so that nothing below moves when a range is selected.
        self._whole.ensurePolished()
        self._range.setMinimumHeight(self._whole.sizeHint().height())
        for figure in (self._busy, self._cause, self._next):
            figure.retheme()

    def _lay_out(self) -> None:
        px = self.theme.px
        self.content.setObjectName("strip")
        self.content.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        scope = QVBoxLayout()
        scope.setSpacing(px(2))
        scope.addWidget(self._devices)
        scope.addWidget(self._device)
        line = QHBoxLayout()
        line.addWidget(self._range, 1)
        line.addWidget(self._whole)
        scope.addLayout(line)
        scope.addWidget(self._trust)
        scope.addStretch(1)
        layout = QGridLayout(self.content)
        layout.setContentsMargins(px(16), px(8), px(16), px(8))
        layout.setHorizontalSpacing(px(16))
        layout.addLayout(scope, 0, 0)
        for at, figure in enumerate((self._busy, self._cause, self._next)):
            rule = QFrame()
            rule.setObjectName("rule")
            rule.setFixedWidth(1)
            layout.addWidget(rule, 0, 2 * at + 1)
            layout.addWidget(figure, 0, 2 * at + 2)
        for column, stretch in ((0, 20), (2, 22), (4, 28), (6, 30)):
            layout.setColumnStretch(column, stretch)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.retheme()

    def _show_devices(self, trace: Trace) -> None:
        names = [trace.device_name(device) for device in range(len(trace["devices"]))]
        short = [trace.device_short(device) for device in range(len(names))]
        room = self._devices.width() - self.theme.px(_ARROW)
        if len(set(short)) == len(short) and any(
            self._devices.fontMetrics().horizontalAdvance(n) > room for n in names
        ):
            # What does not fit is cut in the middle of a letter.
            names = short
        if [self._devices.itemText(at) for at in range(self._devices.count())] != names:
            self._devices.clear()
            self._devices.addItems(names)
        self._devices.setCurrentIndex(self.session.device)
        self._devices.setVisible(len(names) > 1)
        self._device.setVisible(len(names) == 1)
        self._device.set_text(names[0] if len(names) == 1 else "")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other names fit."""
        super().resizeEvent(event)
        if self.session.trace is not None:
            self._show_devices(self.session.trace)

    def _device_chosen(self, device: int) -> None:
        # What was selected on the other device would say one thing and show another.
        self.session.select(Selection(device=device, window=self.session.selection.window))

    def _say_trust(self, answer: Figures) -> None:
        verdict = answer.verdict
        self._trust.setVisible(True)
        self._trust.setObjectName("small" if verdict.level == "trusted" else "doubt")
        self._trust.style().unpolish(self._trust)
        self._trust.style().polish(self._trust)
        first = "kernels inside graphs are not in this file" if answer.whole_graphs else next(iter(verdict.reasons), "")
        level = {"trusted": "figures can be trusted", "partly": "partly to be trusted", "cannot say": "cannot say"}
        said, short = level[verdict.level], {"trusted": "trusted", "partly": "partly trusted"}
        full = f"{said}: {first}" if first else said
        # A reason is worth its room even where it is cut; without one there are words to spare.
        self._trust.set_text(full, *(() if first else (short.get(verdict.level, said),)))
        self._trust.setToolTip("\n".join([*verdict.reasons, *verdict.advice]))

    def _follow(self) -> None:
        found = self._figures
        if found is None or found.next is None:
            return
        span, thread = found.next.span, found.next.thread
        late = thread if thread >= 0 else None
        window = self.session.selection.window
        self.session.select(Selection(window=window, device=found.device, gap=span.start, thread=late))
        margin = round(span.length * _MARGIN)
        self.session.look(Window(span.start - margin, span.end + margin))


def _from_long(*parts: str) -> tuple[str, ...]:
    """All of it, then less and less: what stands last goes first."""
    return tuple("".join(parts[:count]) for count in range(len(parts), 0, -1))


def _beside_busy(answer: Figures) -> tuple[str, ...]:
    """From long to short. How much of a busy processor was none weighs more than the number of gaps."""
    idle, gaps = f"idle {units.time(answer.busy.idle_ns)}", answer.busy.gaps
    in_gaps = f"{idle} in {units.exact(gaps)} gap{'s' if gaps != 1 else ''}"
    forms = _from_long(in_gaps, ", whole graphs counted as busy" if answer.whole_graphs else "")
    if answer.worked_ns:
        waited = units.share(answer.waited_ns, answer.worked_ns)
        forms = (
            f"{in_gaps}, {waited} of the work without a core",
            f"{idle}, {waited} of the work without a core",
            f"{idle}, {waited} without a core",
            *forms,
        )
    return (*forms, idle)


def _waited(answer: Figures) -> str:
    return (
        f"of {units.time(answer.worked_ns)} in the target's forward passes their thread had no core for "
        f"{units.time(answer.waited_ns)}: contention, measured as wall time less thread CPU time"
    )


def host_words(found: Cause) -> str:
    """Where the host was meanwhile, claiming no more than is so."""
    if not found.host:
        untold = CAUSES[found.cause] in ("graph internal", "unattributed")
        return "no host call behind it" if untold else "launched in time"
    share = "most" if 2 * found.host_ns >= found.total_ns else units.share(found.host_ns, found.total_ns)
    return f"{share} of it in {found.host}"
