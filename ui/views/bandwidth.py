"""Memory bandwidth: HBM read and write against the peak, what the device did meanwhile, and each iteration's share."""

from __future__ import annotations

from math import isfinite
from typing import ClassVar

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout

from inspector import units
from inspector.picture.bandwidth import BandwidthPicture, bandwidth_picture
from inspector.trace.selection import NOTHING, Selection, Window
from inspector.trace.trace import Trace
from ui.bandwidth.bars import has_bars
from ui.bandwidth.strips import Strips
from ui.export import Rows
from ui.questions import Question
from ui.views.view import Host, Need, View
from ui.widgets.elided import Elided
from ui.widgets.figure import Figure

_HOW = (
    "No HBM bandwidth of this device was recorded. Nsight Systems measures it with --gpu-metrics-devices=all; inflight "
    "record does on Hopper and later (NVML)."
)


_NO_COUNTERS = "No memory bandwidth to show: no device counters were recorded in this trace."


class MemoryBandwidth(View):
    """Figures above, strips below; the strips show the window that all views share."""

    ID: ClassVar[str] = "bandwidth"
    TITLE: ClassVar[str] = "Memory bandwidth"
    NEEDS: ClassVar[tuple[Need, ...]] = (
        Need(("counters",), _NO_COUNTERS),
        # Counters of a process alone say nothing of a device.
        Need(("devices",), _NO_COUNTERS),
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.answer: BandwidthPicture | None = None
        self.used = Figure(host.theme, "HBM bandwidth used")
        self.parts = Figure(host.theme, "Read and write")
        self.peak = Figure(host.theme, "Peak")
        self.least = Figure(host.theme, "Least that must move")
        self.scope = Elided(host.theme)
        self.nothing = QLabel(_HOW)
        self.nothing.setWordWrap(True)
        self.nothing.setObjectName("muted")
        self.strips = Strips(host.theme)
        self.strips.looked.connect(lambda window, remember: self.session.look(window, remember))
        self.strips.ranged.connect(self._ranged)
        self.strips.iteration.connect(lambda number: self.session.select(self.session.selection.but(iteration=number)))
        # The strips have their width later than the view.
        self.strips.resized.connect(self.refresh)
        self._lay_out()

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """The strips of the device in view."""
        if self.session.device < 0:
            return None
        args = (self.session.device, window, selection.window, self.strips.columns)
        return Question(bandwidth_picture, (trace, *args), (id(trace), trace.generation, *args))

    def show_answer(self, answer: BandwidthPicture) -> None:
        """Figures and strips."""
        self.answer = answer
        self.scope.set_text(*self.session.scope())
        self.strips.show_picture(answer, self.session.selection.window)
        self._say_least(answer)
        found = answer.bandwidth
        self.nothing.setVisible(found is None)
        self.strips.setVisible(bool(answer.strips) or has_bars(answer))
        if found is None:
            self.used.say("–", "no DRAM counters", "")
            self.parts.say("–", "", "")
            known = answer.peak > 0
            self.peak.say(units.rate(answer.peak) if known else "–", "as the trace gives it" if known else "", "")
            return
        spacing = f"samples {units.time(found.both.spacing_ns)} apart"
        covered = answer.covered_ns
        over = f"over {units.time(covered)}" + ("" if covered >= answer.scope.length else " that was sampled")
        rate = found.bytes_per_s(answer.share)
        said = units.rate(rate) if isfinite(rate) else ""
        self.used.say(_percent(answer.share), (f"{said} {over}, {spacing}".strip(), said or over), answer.basis)
        parts = f"{_percent(answer.read)} / {_percent(answer.write)}" if found.read else "–"
        apart = "of peak, mean" if found.read else "this source counts read and write together"
        self.parts.say(parts, apart, answer.basis if found.read else "")
        known = found.peak > 0
        self.peak.say(
            units.rate(found.peak) if known else "–", "as the trace gives it" if known else "not in this trace", ""
        )

    def _say_least(self, answer: BandwidthPicture) -> None:
        """What the iterations must move by the model, where the configuration tells it."""
        found, trace = answer.least, self.session.trace
        self.least.setVisible(trace is not None and len(trace.info.configuration) > 0)
        if not found.count:
            self.least.say("–", f"not modelled: {found.why}", "")
            return
        each = f"{units.size(found.bytes_each)} each, mean of {found.count:,} iterations"
        if found.ranks > 1:
            each += f", {found.ranks:,} ranks together"
        if found.kv_unknown:
            each += "; weights alone" if found.kv_unknown == found.count else f"; {found.kv_unknown:,} weights alone"
        rate = units.rate(found.rate) if isfinite(found.rate) else ""
        value = _percent(found.share) if isfinite(found.share) else rate or units.size(found.bytes_each)
        said = f"{rate}, {each}" if rate and isfinite(found.share) else each
        if found.share > 1:
            each = said = "more than the peak: another model ran, or more devices share it"
        self.least.say(value, (said, each, rate or each), "modelled")
        self.least.setToolTip(f"{found.formula}.\nShared by {found.ranks:,}: {found.by}" if found.ranks else found.by)

    def rows_for_copy(self) -> Rows | None:
        """The samples of the strips in view."""
        answer = self.answer
        if answer is None:
            return None
        rows = []
        for strip in answer.strips:
            for layer in strip.layers:
                time = layer.samples.time
                inside = np.flatnonzero((time >= answer.window.start) & (time <= answer.window.end))
                rows += [
                    (strip.title, layer.name, int(time[at]), float(layer.samples.value[at]) * layer.scale, strip.unit)
                    for at in inside
                ]
        return Rows(("strip", "counter", "time ns", "value", "unit"), rows)

    def retheme(self) -> None:
        """Type sizes anew."""
        for figure in (self.used, self.parts, self.least, self.peak):
            figure.retheme()
        self.refresh()
        self.update()

    def hold(self) -> None:
        """Hold the picture of a run, or resume it."""
        self.session.hold()

    def _ranged(self, window: Window | None) -> None:
        if window is not None:
            self.session.select(Selection(window=window, device=self.session.device))
        elif self.session.selection.window is not None:
            self.session.select(NOTHING)

    def _lay_out(self) -> None:
        px = self.theme.px
        self.paint_background()
        self.scope.setObjectName("muted")
        self.scope.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
        figures = QHBoxLayout()
        figures.setContentsMargins(px(8), px(8), px(8), 0)
        figures.setSpacing(px(24))
        for figure in (self.used, self.parts, self.least, self.peak):
            figures.addWidget(figure, 2)
        figures.addWidget(self.scope, 2)
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(0, 0, 0, px(4))
        layout.setSpacing(px(4))
        layout.addLayout(figures)
        self.nothing.setContentsMargins(px(8), px(8), px(8), px(8))
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self.nothing)
        layout.addWidget(self.strips, 1)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if isfinite(share) else "–"
