"""A gap that was gone to stays in view, with the strip that tells why and the thread that was late beside it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from PySide6.QtWidgets import QWidget

from inspector.trace.trace import Trace
from ui.timeline.commands import Commands
from ui.timeline.layout import Lifted
from ui.timeline.resolve import gap_tracks, late_thread
from ui.views.view import Host


class GapInView(Commands):
    """What the timeline does for the gap that is selected, until the user scrolls."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(host, parent)
        self._lifted: Lifted | None = None
        # Until the user scrolls, a gap that was gone to stays in view whatever opens beside it.
        self._keeping = False

    @abstractmethod
    def _lay_out(self) -> None:
        """Place the rows anew."""

    def _unfold_gap(self, trace: Trace) -> None:
        """The strip of the device whose gap is selected can be seen."""
        strips = gap_tracks(trace, self.session.selection)
        if strips and strips[0].group in self.arrangement.folded:
            self.arrange(replace(self.arrangement, folded=self.arrangement.folded - {strips[0].group}))

    def _keep_gap_in_view(self) -> None:
        """Of a gap the strip that tells why, and the thread that was late: where both do not fit, its first track
        stands right below the strip.
        """
        trace = self.session.trace
        strips = gap_tracks(trace, self.session.selection) if trace is not None and self._keeping else []
        if trace is None or not strips:
            return
        late = late_thread(self.canvas.scene)
        others = [track.identity for track in (*late[:1], *strips[1:], *late[1:])]
        shown = self.canvas.scroll_to_all(strips[0].identity, others)
        if late and late[0].identity not in shown and self._lifted is None:
            self._lift(Lifted(late[0].identity, strips[0].identity))
            self.canvas.scroll_to_all(strips[0].identity, others)

    def _lift(self, lifted: Lifted | None) -> None:
        self._lifted = lifted
        self._lay_out()
        self.refresh()

    def _let_go(self) -> None:
        self._keeping = False
