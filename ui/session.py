"""The one thing that views share: the open trace, what is selected in it, and the span that is in view.

Setting an equal value is silent, which is what ends signal loops.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from PySide6.QtCore import QObject, Signal

from inspector import units
from inspector.trace.selection import NOTHING, Selection, Window
from ui import reading
from ui.history import History
from ui.kept import Mark, fingerprint, kept_marks, kept_window
from ui.live import Live
from ui.pace import Rounds
from ui.questions import Asker, Failure, Question
from ui.settings import SettingsFile

if TYPE_CHECKING:
    from inspector.configuration.settings import Configuration
    from inspector.readers.reader import Progress
    from inspector.trace.trace import Trace
    from ui.reading import Found

SHORTEST_NS = 10
# Records of a run are painted up to half a second after they were made.
_LEAST_FOLLOWED_NS = 2_000_000_000
_EMPTY = Window(0, 0)


class Session(QObject):
    """Trace, selection, visible window and marks; every change is announced by one signal.

    `device` is the row of devices that figures and tables are about: the one selected last, at first the first with
    work; -1 without devices. `opening` are the paths being read, with `progress`; `failure` says why the last opening
    failed. `grown` is emitted when `trace` has become a later generation of what it was, `followed` when somebody asked
    for the newest time.
    """

    trace_changed = Signal()
    grown = Signal()
    selection_changed = Signal()
    window_changed = Signal()
    followed = Signal()
    marks_changed = Signal()
    opening_changed = Signal()

    def __init__(self, asker: Asker, settings: SettingsFile, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.asker = asker
        self.settings = settings
        self.trace: Trace | None = None
        self.device = -1
        self.marks: tuple[Mark, ...] = ()
        self.opening: tuple[str, ...] = ()
        self.progress: Progress | None = None
        self.failure: Failure | None = None
        self._selections: History[Selection] = History(NOTHING)
        self._windows: History[Window] = History(_EMPTY)
        self._fingerprint = ""
        self.rounds = Rounds()
        """Which generations of a run the slow questions are asked of."""
        self.live = Live(asker, self._advance, self._failed, self)
        self._run = False
        self._joined: Configuration | None = None
        self._shows: Literal["first", "whole", "chosen"] = "first"
        self.is_advancing = False
        """While a new generation is announced: nobody has asked for anything."""

    @property
    def selection(self) -> Selection:
        """What is selected."""
        return self._selections.present

    @property
    def window(self) -> Window:
        """The visible span of time; empty without a trace."""
        return self._windows.present

    @property
    def whole(self) -> Window:
        """The span of the whole trace, of a run up to where all has been read; empty without a trace."""
        if self.trace is None:
            return _EMPTY
        whole = self.trace.whole
        return replace(whole, end=max(self.trace.settled_ns, whole.start + 1)) if self.live.is_on else whole

    @property
    def whole_words(self) -> str:
        """What figures are of where no range is selected."""
        since = self.trace.kept.from_ns if self.trace is not None else 0
        return f"since {units.time(since)}" if since else "whole trace"

    def scope(self) -> tuple[str, ...]:
        """What figures and tables are of, in words, from long to short: the device and the range."""
        if self.trace is None or self.device < 0:
            return ("",)
        chosen = self.selection.window
        span = self.whole_words if chosen is None else f"selected range, {units.time(chosen.length)}"
        name = self.trace.device_name(self.device)
        number = self.trace.device_short(self.device)
        return f"{name}, {span}", f"{number}, {span}", f"{number}, {span.partition(',')[0]}", number

    def open(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        """Read `paths` (several are the ranks of one job) in the pool; the trace that is open stays until then.

        Files of configuration join the traces among them, and alone the trace that is open.
        """
        self._read(reading.read, paths)

    def follow(self, path: str | os.PathLike[str]) -> None:
        """Follow the recording that is being made in the folder `path`. (`open` does so as well for such a one.)"""
        self._read(reading.follow, (path,))

    def _read(self, function: Callable[..., Any], paths: Sequence[str | os.PathLike[str]]) -> None:
        self._stop_opening()
        self.opening = tuple(str(Path(path).absolute()) for path in paths)
        self.progress, self.failure = None, None
        self.opening_changed.emit()
        question = Question(function, self.opening, (function.__name__, *self.opening), reports=True)
        self.asker.ask(("open", self.opening), question, self._opened, self._failed, self._moved)

    def cancel_opening(self) -> None:
        """Stop reading; the trace that was open stays."""
        self._stop_opening()
        self.opening_changed.emit()

    def dismiss_failure(self) -> None:
        """The user has read why the last opening failed."""
        self.failure = None
        self.opening_changed.emit()

    def set_trace(self, trace: Trace | None) -> None:
        """Show `trace`, arranged as it was left the last time; None closes the one that is open."""
        self.live.stop()
        self._joined = None
        self._show(trace)

    def _show(self, trace: Trace | None) -> None:
        self._keep_window()
        self.trace = trace
        self._selections, self._windows = History(NOTHING), History(_EMPTY)
        self.marks, self.device, self._fingerprint = (), -1, ""
        if trace is not None:
            self._fingerprint = fingerprint(trace.info.paths)
            self.device = _first_shown(trace) if self.live.is_on else _first_device(trace)
            self._windows = History(self._clipped(kept_window(self.arrangement("window")) or self.whole))
            self.marks = tuple(kept_marks(self.arrangement("marks")))
        self.trace_changed.emit()

    def select(self, selection: Selection) -> None:
        """Select that; an equal selection is silent.

        A range stays while records come and go: NOTHING ends it, and the same selection without it. A new range is
        selected alone, since figures are of it and of no record.
        """
        selection = self._with_range(selection)
        if selection == self.selection:
            return
        self._selections.go(selection)
        self._selected()

    def undo_selection(self) -> None:
        """The selection before this one."""
        if self._selections.back():
            self._selected()

    def redo_selection(self) -> None:
        """The selection that was undone last."""
        if self._selections.forward():
            self._selected()

    def clear_selection(self) -> None:
        """Select nothing."""
        self.select(NOTHING)

    def look(self, window: Window, remember: bool = True) -> None:
        """Bring `window` into view, moved and cut so that it lies in the trace. Without `remember` Backspace skips it.

        Steps of one movement are not remembered, its first one is.
        """
        window = self._clipped(window)
        self._looks_at(window)
        if window == self.window:
            return
        if remember:
            self._windows.go(window)
        else:
            self._windows.present = window
        self.window_changed.emit()

    def follow_end(self) -> None:
        """To the end, as close as it is now; of a run to its newest time, held or not, and on with it, from so far away
        that there is something to be seen before it has passed.
        """
        self.live.release()
        end = self.whole.end
        least = _LEAST_FOLLOWED_NS if self.live.is_on else 0
        self.look(Window(end - max(self.window.length, least), end))
        self.followed.emit()

    def hold(self) -> None:
        """Hold what is in view of a run, or go on. The recording goes on all the time."""
        self.live.toggle()

    def release(self) -> None:
        """Show what is newest of a run again, where its picture was held."""
        self.live.release()

    def fit(self) -> None:
        """Bring the whole trace into view; of a run also what comes."""
        self.look(self.whole)
        self._shows = "whole"

    def back(self) -> None:
        """The view before this one."""
        if self._windows.back():
            self._looks_at(self.window)
            self.window_changed.emit()

    def forward(self) -> None:
        """The view that `back` left."""
        if self._windows.forward():
            self._looks_at(self.window)
            self.window_changed.emit()

    def set_marks(self, marks: Sequence[Mark]) -> None:
        """Replace the marks; those to keep are kept with the trace."""
        if tuple(marks) == self.marks:
            return
        self.marks = tuple(marks)
        self.arrange("marks", [[mark.start, mark.end, mark.label] for mark in self.marks if mark.kept])
        self.marks_changed.emit()

    def arrangement(self, what: str) -> Any:
        """What a view kept for this trace under that name (JSON values); None when it kept nothing."""
        return self.settings.values.arrangements.get(self._fingerprint, {}).get(what)

    def arrange(self, what: str, value: Any) -> None:
        """Keep a JSON value for this trace, e.g. the tracks that are pinned."""
        if not self._fingerprint:
            return
        arrangements = self.settings.values.arrangements
        kept = arrangements.pop(self._fingerprint, {})
        kept[what] = value
        arrangements[self._fingerprint] = kept
        self.settings.save()

    def close(self) -> None:
        """Keep what is to be kept."""
        self.live.stop()
        self._stop_opening()
        self._keep_window()

    def _advance(self, trace: Trace) -> None:
        """A new generation of the run: everything stays as it is, but what is newest comes into view."""
        if self._joined is not None:
            trace = trace.configured(self._joined)
        old = self.trace
        if old is None or old.info.paths != trace.info.paths or not self._run:
            self._run = True
            self._show(trace)
            self._shows = "first"
            self._windows = History(self._clipped(self.live.window(trace, None)))
            self.window_changed.emit()
            return
        # As above.
        from inspector.trace.carry import carried

        selection = carried(self.selection, old, trace)
        if self.device < 0:
            self.device = _first_shown(trace)
        else:
            device = carried(NOTHING.but(device=self.device), old, trace).device
            self.device = -1 if device is None else device
        self.trace = trace
        if selection != self.selection:
            self._selections = History(selection)
        window = self._following() if self.live.follows_end else self.window
        moved = window != self.window
        self._windows.present = self._clipped(window)
        self.is_advancing = True
        try:
            self.grown.emit()
            if moved:
                self.window_changed.emit()
        finally:
            self.is_advancing = False

    def _looks_at(self, window: Window) -> None:
        """The user has chosen that; where its end is the newest time, it goes on with it."""
        self._shows = "chosen"
        if self.live.is_on:
            self.live.follow_end(window.end >= self.whole.end)

    def _following(self) -> Window:
        assert self.trace is not None
        if self._shows == "whole":
            return self.whole
        return self.live.window(self.trace, None if self._shows == "first" else self.window)

    def _with_range(self, selection: Selection) -> Selection:
        present = self.selection
        if selection.window is not None and not selection.window.length:
            selection = selection.but(window=None)
        if selection.window == present.window or selection == NOTHING:
            return selection
        alone = selection.but(window=present.window) == present
        if selection.window is None:
            return selection if alone else selection.but(window=present.window)
        return Selection(window=selection.window, device=selection.device) if alone else selection

    def _selected(self) -> None:
        if self.selection.device is not None:
            self.device = self.selection.device
        self.selection_changed.emit()

    def _keep_window(self) -> None:
        if self.trace is not None and self.window.length:
            kept = None if self.window == self.whole else [self.window.start, self.window.end]
            if kept != self.arrangement("window"):
                self.arrange("window", kept)

    def _clipped(self, window: Window) -> Window:
        whole = self.whole
        length = min(max(window.length, SHORTEST_NS), whole.length)
        start = min(max(window.start, whole.start), whole.end - length)
        return Window(start, start + length)

    def _stop_opening(self) -> None:
        if self.opening:
            self.asker.forget(("open", self.opening))
        self.opening, self.progress = (), None

    def _moved(self, progress: Progress) -> None:
        self.progress = progress
        self.opening_changed.emit()

    def _opened(self, found: Found) -> None:
        # Here, since they bring numpy, and nothing heavy comes before the window.
        from inspector.readers import only_configuration
        from inspector.trace.trace import Trace

        paths, trace = self.opening, found.trace
        self.opening, self.progress = (), None
        if trace is not None:
            self.settings.remember(paths)
        if isinstance(trace, Trace):
            self.set_trace(trace)
        elif trace is not None:
            self._run, self._joined = False, found.joined
            self.live.start(trace)
        elif self.trace is None:
            self.failure = Failure(str(only_configuration(paths)))
        else:
            self._join(found.joined)
        self.opening_changed.emit()

    def _join(self, more: Configuration) -> None:
        """The configuration joins the trace that is open, of a run also what comes of it."""
        from inspector.configuration.settings import merged

        assert self.trace is not None
        self._joined = more if self._joined is None else merged([more, self._joined])
        self.trace = self.trace.configured(more)
        self.grown.emit()

    def _failed(self, failure: Failure) -> None:
        self.opening, self.progress, self.failure = (), None, failure
        self.opening_changed.emit()


def _first_shown(trace: Trace) -> int:
    """As `_first_device`, of a trace that grows, whose tracks are at hand."""
    from inspector.picture.tracks import Tracks

    return next((track.key for track in trace.index(Tracks).tracks if track.kind == "busy"), -1)


def _first_device(trace: Trace) -> int:
    from inspector.trace.work import Work

    busy = [work.device for work in trace.index(Work).devices if len(work)]
    return busy[0] if busy else min(len(trace["devices"]), 1) - 1
