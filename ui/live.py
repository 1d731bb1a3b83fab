"""A recording that is being made, in the window: read ten times a second in the pool, and shown unless held."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, QTimer, Signal

from inspector.trace.selection import Window
from ui.memory import give_back_early
from ui.questions import Asker, Failure, Question

if TYPE_CHECKING:
    from inspector.readers.recording.follow import Following
    from inspector.trace.trace import Trace

State = Literal["", "live", "held", "complete", "recovered"]
_EVERY_MS = 100
# What is in view of a run at first.
SPAN_NS = 10_000_000_000


class Live(QObject):
    """Brings generation after generation of one recording; `advance(trace)` is called for each that is to be shown.

    `state` is '' when nothing is or was followed; after the end of the run it says how it ended. With `follows_end` the
    newest time stays in view. `changed` when one of them does.
    """

    changed = Signal()

    def __init__(
        self,
        asker: Asker,
        advance: Callable[[Trace], None],
        failed: Callable[[Failure], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.state: State = ""
        self.follows_end = True
        self._asker, self._advance, self._failed_with = asker, advance, failed
        self._following: Following | None = None
        self._held: Trace | None = None
        self._asked = 0
        self._is_asked = False
        self._timer = QTimer(self)
        self._timer.setInterval(_EVERY_MS)
        self._timer.timeout.connect(self._poll)

    @property
    def is_on(self) -> bool:
        """Whether more may come."""
        return self._timer.isActive()

    def start(self, following: Following) -> None:
        """Follow that recording, and no other any more."""
        self.stop()
        give_back_early()
        self._following, self.state, self.follows_end = following, "live", True
        self._timer.start()
        self.changed.emit()
        self._poll()

    def stop(self) -> None:
        """Follow nothing any more; the recording goes on."""
        self._timer.stop()
        self._asker.forget(self)
        self._following, self._held, self._is_asked = None, None, False
        if self.state:
            self.state = ""
            self.changed.emit()

    def toggle(self) -> None:
        """Hold the picture, or go on with what is newest. What comes meanwhile is read all the same."""
        if self.state == "live":
            self.state = "held"
            self.changed.emit()
        else:
            self.release()

    def release(self) -> None:
        """Go on with what is newest, where the picture was held."""
        if self.state == "held":
            self.state = "live"
            self._show_held()
            self.changed.emit()

    def follow_end(self, follows: bool) -> None:
        """Whether the newest time is to stay in view."""
        if follows != self.follows_end:
            self.follows_end = follows
            self.changed.emit()

    def window(self, trace: Trace, present: Window | None) -> Window:
        """What is to be in view: the newest time at the right edge, as long as what is in view now. With None, what is
        in view of a run at first: all of it, until that is long.
        """
        # What is newer is not all here yet.
        end = max(trace.settled_ns, 1)
        length = min(SPAN_NS, end) if present is None else present.length
        return Window(max(end - length, 0), end)

    def _poll(self) -> None:
        if self._following is None or self._is_asked:
            return
        self._is_asked = True
        self._asked += 1
        question = Question(_poll, (self._following,), (id(self._following), self._asked), prompt=True)
        self._asker.ask(self, question, self._answered, self._failed)

    def _answered(self, trace: Trace | None) -> None:
        self._is_asked = False
        following = self._following
        if following is None:
            return
        if trace is not None:
            self._held = trace
        if following.state != "recording":
            self._timer.stop()
            self.state = "complete" if following.state == "complete" else "recovered"
            self._show_held()
            self.changed.emit()
        elif self.state == "live":
            self._show_held()

    def _show_held(self) -> None:
        trace, self._held = self._held, None
        if trace is not None:
            self._advance(trace)

    def _failed(self, failure: Failure) -> None:
        self._is_asked = False
        self.stop()
        self._failed_with(failure)


def _poll(following: Following) -> Trace | None:
    from inspector.picture.tracks import Tracks
    from inspector.trace.work import Work

    trace = following.poll()
    if trace is not None:
        # The GUI thread needs it at once.
        trace.index(Tracks)
        if following.state != "recording":
            trace.index(Work)
    return trace
