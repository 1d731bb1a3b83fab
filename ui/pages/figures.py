"""The figures of a moment, one line each: a label, the value, and what it means where one points at it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFormLayout, QLabel, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from inspector import units
from inspector.analysis.configured import WITH_DRAFTS, page_words
from inspector.analysis.page_replay import KEPT, Replay
from inspector.analysis.told_pages import ToldPages
from inspector.configuration.sizes import page_bytes
from ui.pages.moment import Moment, page_tokens
from ui.theme import Theme
from ui.widgets.elided import Elided


class FigureList(QScrollArea):
    """Lines of figures, and below them what makes them less than certain."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._labels: list[str] = []
        self._values: list[Elided] = []
        self._page = QWidget()
        self._page.setObjectName("panel")
        self._form = QFormLayout()
        self._notes = QLabel()
        self._notes.setObjectName("doubt")
        self._notes.setWordWrap(True)
        self._notes.setTextFormat(Qt.TextFormat.PlainText)
        self._notes.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._column = QVBoxLayout(self._page)
        self._column.addLayout(self._form)
        self._column.addWidget(self._notes)
        self._column.addStretch(1)
        self.setWidget(self._page)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Figures of the pages")
        self.retheme()

    def show_moment(self, shown: Moment) -> None:
        """Say them."""
        self.show_lines(figure_lines(shown), shown.notes)

    def show_lines(self, lines: Sequence[tuple[str, str, str, str]], notes: Sequence[str]) -> None:
        """(label, value, explanation, severity), then sentences."""
        labels = [label for label, _, _, _ in lines]
        if labels != self._labels:
            self._lay_out(labels)
        for value, (_, text, tip, severity) in zip(self._values, lines, strict=True):
            value.setObjectName("wrong" if severity else "")
            value.style().unpolish(value)
            value.style().polish(value)
            value.set_text(text, *_shorter(text))
            value.setToolTip(f"{text}: {tip}" if tip else text)
        self._notes.setText("\n".join(notes))
        self._notes.setVisible(bool(notes))
        self.setAccessibleDescription(", ".join(f"{label} {text}" for label, text, _, _ in lines))

    def retheme(self) -> None:
        """Distances in the size of the type."""
        px = self._theme.px
        self._column.setContentsMargins(px(8), px(2), px(8), px(8))
        self._form.setHorizontalSpacing(px(12))
        self._form.setVerticalSpacing(px(3))
        for value in self._values:
            value.retheme()

    def _lay_out(self, labels: Sequence[str]) -> None:
        while self._form.rowCount():
            self._form.removeRow(0)
        self._labels, self._values = list(labels), []
        for label in labels:
            name, value = QLabel(label), Elided(self._theme)
            name.setObjectName("muted")
            value.setAccessibleName(label)
            self._values.append(value)
            self._form.addRow(name, value)


def _shorter(text: str) -> tuple[str, ...]:
    """The same with less after the dot."""
    parts = text.split(" · ")
    return tuple(" · ".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))


def figure_lines(shown: Moment) -> list[tuple[str, str, str, str]]:
    """(label, value, explanation, severity) of every figure; severity "doubt" or ""."""
    figures, counts = shown.figures, shown.pages.counts
    share = units.share
    size = page_tokens(shown.trace, shown.time)
    row = shown.trace.index(Replay).pools.row(shown.time)
    recorded = int(shown.trace.index(Replay).pools.block_bytes[row])
    lines = [
        ("in use", f"{counts.used:,} of {counts.blocks:,} · {share(counts.used, counts.blocks)}", "", ""),
        ("can be had", f"{counts.available:,} · {counts.free:,} free, {counts.kept:,} cached", "", ""),
    ]
    told = shown.trace.index(ToldPages).applies
    if told:
        lines = _told_lines(shown)
    elif recorded > 0:
        text = f"{units.size(counts.used * recorded)} of {units.size(counts.blocks * recorded)}"
        lines.append(("bytes in use", text, f"a page is {recorded:,} bytes and {size} tokens", ""))
    lines += _page_lines(shown, recorded)
    unknown = counts.host_unknown + (0 if told else counts.unknown)
    if unknown:
        why = "since page events are missing" if len(shown.trace["page_events"]) else "nobody tells what they are"
        lines.append(("unknown", f"{unknown:,}", why, "doubt"))
    if counts.host_blocks:
        lines.append(("host pages", f"{counts.host:,} of {counts.host_blocks:,}", "", ""))
    asked = figures.reused + figures.missed
    if figures.reuse_from:
        why = f"pages of prompts that were there already, of all that prompts asked for; from {figures.reuse_from}"
        lines.append(("reuse", f"{share(figures.reused, asked)} · {figures.reused:,} of {asked:,}", why, ""))
    if figures.shared:
        saved = f"{figures.saved:,} pages saved · {figures.shared:,} shared"
        lines.append(("shared now", saved, "pages with several holders, and how many copies they save", ""))
    why = "cached contents given up for new pages, until this moment"
    lines.append(("evicted", f"{figures.evicted:,} so far", why, ""))
    if counts.host_blocks:
        why = "cached contents that moved to host memory, and those that came back, until this moment"
        lines.append(("to host", f"{figures.offloaded:,} so far · {figures.restored:,} back", why, ""))
        why = "cached contents given up in host memory, until this moment"
        lines.append(("dropped there", f"{figures.host_dropped:,} so far", why, ""))
    if figures.filled >= 0 and figures.slots > 0:
        empty = figures.slots - figures.filled
        why = "token slots of the pages in use that hold no token yet (internal fragmentation)"
        lines.append(("unfilled", f"{share(empty, figures.slots)} · {empty:,} of {figures.slots:,} slots", why, ""))
    if figures.told and figures.worst_pages >= 0:
        text = f"{figures.worst_pages:,} pages · {figures.worst_pages / max(counts.used, 1):.1f}× those in use"
        if figures.worst_pages > counts.blocks:
            text = f"{figures.worst_pages:,} pages · does not fit"
        why = (
            f"what {figures.told:,} of {figures.live:,} requests would have taken if each had memory for its prompt "
            f"and all tokens it may make: {figures.worst_tokens:,} tokens"
        )
        lines.append(("contiguous", text, why, ""))
    if figures.growth > 0 and figures.exhausted_ns is not None:
        why = "if pages in use go on growing as in the 2 s before"
        when = units.time(figures.exhausted_ns) if figures.exhausted_ns else "now"
        label = "full in" if figures.exhausted_ns else "full"
        lines.append((label, f"{when} · +{units.three_digits(figures.growth)} pages/s", why, ""))
    if figures.pressure:
        text = f"no page to be had, {figures.waiting:,} requests wait"
        lines.append(("pressure", text, "", "doubt"))
    elif figures.waiting:
        lines.append(("waiting", f"{figures.waiting:,} requests", "queued or paused in this iteration", ""))
    why = "pages are counted; contiguous memory and the time that is left are worked out from them"
    lines.append(("basis", shown.trace.info.basis, why, ""))
    return lines


def _page_lines(shown: Moment, recorded: int) -> list[tuple[str, str, str, str]]:
    """The size of a page: as recorded, and as it follows from the model; where both differ, that is said."""
    config = shown.trace.info.configuration
    made = page_bytes(config)
    if made.value is None:
        return []
    why = f"modelled, all ranks together: {made.formula}"
    if recorded <= 0:
        return [("a page", f"{units.size(made.value)} modelled", f"{made.value:,} bytes; {why}", "")]
    said = page_words(config, [recorded])
    if not said:
        return [("a page", f"{units.size(recorded)} · modelled the same", f"{recorded:,} bytes; {why}", "")]
    drafts = said.endswith(WITH_DRAFTS)
    text = f"{units.size(recorded)} · modelled {units.size(made.value)}" + (" without drafts" if drafts else "")
    return [("a page", text, f"{said}; {made.value:,} bytes {why}", "" if drafts else "doubt")]


def _told_lines(shown: Moment) -> list[tuple[str, str, str, str]]:
    """What is in use where an engine's records of iterations tell, and page events only what is cached."""
    counts = shown.pages.counts
    why = "by the engine's record of the iteration: page events of a server tell what is cached, not who holds it"
    free = counts.blocks - counts.used
    if counts.unknown == counts.blocks:
        lines = [("in use", "not told yet", why, "doubt")]
    else:
        can = f"{counts.free:,} free, {counts.kept:,} cached"
        if counts.unknown:
            can = f"{counts.kept:,} to {counts.kept + counts.unknown:,} of them cached"
        lines = [
            ("in use", f"{counts.used:,} of {counts.blocks:,} · {units.share(counts.used, counts.blocks)}", why, ""),
            ("can be had", f"{free:,} · {can}", why, ""),
        ]
    if len(shown.trace["page_events"]):
        held = int(np.count_nonzero(shown.pages.status == KEPT))
        lines.append(("hold contents", f"{held:,} that can be reused", "by page events; in use or not", ""))
    return lines
