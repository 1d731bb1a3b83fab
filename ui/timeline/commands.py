"""What keys and menus do in the timeline. Method names are those of the table of actions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from PySide6.QtGui import QStatusTipEvent
from PySide6.QtWidgets import QApplication

from inspector.analysis.causes import Causes
from inspector.analysis.gaps import Gaps
from inspector.analysis.iterations import Iterations
from inspector.picture.navigate import along, next_work, place_of
from inspector.picture.search import SEARCHED, Hits
from inspector.picture.timeline import Hit
from inspector.picture.tracks import Track, Tracks
from inspector.trace.schema import WORK_TABLES
from inspector.trace.selection import NOTHING, Selection, Window
from inspector.trace.trace import Trace
from ui.kept import Mark
from ui.timeline.canvas import Canvas
from ui.timeline.layout import Arrangement
from ui.timeline.searchbar import SearchBar
from ui.views.view import View

_STEP, _FAR_STEP = 0.12, 0.75
_ZOOM = 1.4
_NO_TRACK = "Click a track first"


class Commands(View):
    """The part of the timeline that does what one asks for by key."""

    canvas: Canvas
    search_bar: SearchBar
    arrangement: Arrangement
    hits: Hits | None
    _said = False

    def say(self, text: str) -> None:
        """Say in the status line why nothing happened; '' takes it back."""
        if text or self._said:
            self._said = bool(text)
            QApplication.sendEvent(self, QStatusTipEvent(text))

    @abstractmethod
    def arrange(self, arrangement: Arrangement) -> None:
        """Put the tracks in that order, and keep it with the trace."""

    def zoom_in(self) -> None:
        """At the pointer, else in the middle."""
        self._zoom(1 / _ZOOM)

    def zoom_out(self) -> None:
        """At the pointer, else in the middle."""
        self._zoom(_ZOOM)

    def _zoom(self, factor: float) -> None:
        scene = self.canvas.scene
        over = scene.pointer is not None and scene.pointer[0] >= scene.left
        x = scene.pointer[0] if over and scene.pointer is not None else scene.left + scene.viewport.width / 2
        self.canvas.gestures.zoom(factor, x)

    def pan_left(self) -> None:
        """To earlier times."""
        self._pan(-_STEP)

    def pan_right(self) -> None:
        """To later times."""
        self._pan(_STEP)

    def pan_left_far(self) -> None:
        """Most of a screen back."""
        self._pan(-_FAR_STEP)

    def pan_right_far(self) -> None:
        """Most of a screen on."""
        self._pan(_FAR_STEP)

    def _pan(self, share: float) -> None:
        self.canvas.gestures.pan(share * self.canvas.scene.viewport.width)

    def scroll_up(self) -> None:
        """Show the tracks above."""
        self.canvas.scroll_by(-self.theme.px(48))

    def scroll_down(self) -> None:
        """Show the tracks below."""
        self.canvas.scroll_by(self.theme.px(48))

    def fit_selection(self) -> None:
        """The selected range or record fills the view; where it does already, the whole trace."""
        target = self._selected_span()
        if target is None:
            self.session.fit()
            return
        before = self.session.window
        self.session.look(target)
        if self.session.window == before:
            self.session.fit()

    def _selected_span(self) -> Window | None:
        if self.session.selection.window is not None:
            return self.session.selection.window
        selected = self.canvas.scene.selected
        if selected is None:
            return None
        margin = max((selected.end - selected.start) // 8, 20)
        return Window(selected.start - margin, selected.end + margin)

    def range_from_selection(self) -> None:
        """The selected record becomes a range."""
        selected = self.canvas.scene.selected
        if selected is None:
            self.say("Select a record first: its time becomes the range that the figures are of")
        elif selected.end <= selected.start:
            self.say("An instant is no range: drag over one, or mark the instant with M")
        else:
            self.session.select(self.session.selection.but(window=Window(selected.start, selected.end)))

    def mark(self) -> None:
        """Mark what is selected, or the time under the pointer, until the next mark."""
        self._mark(False)

    def keep_mark(self) -> None:
        """The same, kept with the trace."""
        self._mark(True)

    def _mark(self, kept: bool) -> None:
        if self.session.trace is None:
            return
        scene = self.canvas.scene
        window, selected = self.session.selection.window, scene.selected
        if window is not None:
            start, end = window.start, window.end
        elif selected is not None:
            start, end = selected.start, selected.end
        else:
            over = scene.pointer is not None and scene.pointer[0] >= scene.left
            x = scene.pointer[0] if over and scene.pointer is not None else scene.left + scene.viewport.width / 2
            start = end = round(scene.time(x))
        others = [mark for mark in self.session.marks if mark.kept and (mark.start, mark.end) != (start, end)]
        number = 1 + sum(mark.kept for mark in others)
        self.session.set_marks((*others, Mark(start, end, str(number) if kept else "", kept)))

    def search(self) -> None:
        """Open the search bar."""
        if self.session.trace is not None:
            self.search_bar.begin()

    def next_hit(self) -> None:
        """The next record that the search found."""
        self._step_hit(1)

    def previous_hit(self) -> None:
        """The one before."""
        self._step_hit(-1)

    def _step_hit(self, by: int) -> None:
        trace, found = self.session.trace, self.hits
        if trace is None:
            return
        if found is None or not len(found):
            self.say(
                "Nothing is searched for: / or Ctrl+F searches names" if found is None else "The search has no hits"
            )
            return
        selected = self.canvas.scene.selected
        time = selected.start if selected is not None else self.session.window.start
        source, row = (selected.source, selected.row) if selected is not None else (None, None)
        at = found.after(time, source, row) if by > 0 else found.before(time, source, row)
        self.select_record(SEARCHED[int(found.table[at])], int(found.row[at]))
        self.search_bar.say(f"{at + 1:,} of {len(found):,} hits")

    def next_event(self) -> None:
        """The next record on the track."""
        self._along(1)

    def previous_event(self) -> None:
        """The one before on the track."""
        self._along(-1)

    def _along(self, by: int) -> None:
        trace, scene = self.session.trace, self.canvas.scene
        track = scene.selected.track if scene.selected is not None else self._track(scene.current)
        if trace is None:
            return
        if track is None:
            self.say("Click a track first: this goes along its records")
            return
        content = scene.content(track)
        if content is None:
            return
        if scene.selected is not None:
            found = along(content, track, scene.selected.start, max(scene.selected.lane, 0), by)
        else:
            found = along(content, track, self.session.window.start - (by > 0), -1, by)
        if found is not None:
            self.select_hit(found)
            self.reveal(found)
        else:
            self.say("No more records on this track that way")

    def next_kernel(self) -> None:
        """The work that starts next on the device, on whatever stream."""
        self._kernel(1)

    def previous_kernel(self) -> None:
        """The work that started before."""
        self._kernel(-1)

    def _kernel(self, by: int) -> None:
        trace, selected = self.session.trace, self.canvas.scene.selected
        if trace is None or self.session.device < 0:
            return
        device, time, table, row = self.session.device, self.session.window.start - (by > 0), None, None
        if selected is not None:
            time = selected.start
            if selected.source in WORK_TABLES:
                table, row = selected.source, selected.row
                stream = int(trace[table]["stream"][row])
                device = int(trace["streams"]["device"][stream]) if stream >= 0 else device
        found = next_work(trace, device, time, table, row, by)
        if found is not None:
            self.select_record(*found)
        else:
            self.say("No more work on this GPU that way")

    def follow_forward(self) -> None:
        """From a launch call to what it launched."""
        selected = self.canvas.scene.selected
        if selected is not None and selected.source == "host_calls":
            self._follow("This call launched nothing that is in the trace")
        else:
            self.say("Select a launch call first: this goes to the kernel that it launched")

    def follow_back(self) -> None:
        """From a kernel to the call that launched it."""
        selected = self.canvas.scene.selected
        if selected is not None and selected.source in WORK_TABLES:
            self._follow("The trace has no launch call for this one")
        else:
            self.say("Select a kernel first: this goes to the call that launched it")

    def _follow(self, otherwise: str) -> None:
        linked = self.canvas.scene.linked
        if not linked:
            self.say(otherwise)
        else:
            self.select_hit(linked[0])
            self.reveal(linked[0])

    def pin(self) -> None:
        """Keep the current track in view under the ruler, or let it go."""
        track = self.current_track()
        if track is not None:
            self.arrange(self.arrangement.toggle_pin(track.identity))
        else:
            self.say(_NO_TRACK)

    def collapse(self) -> None:
        """Fold or unfold the current track."""
        track = self.current_track()
        if track is not None:
            self.arrange(self.arrangement.toggle_fold(track.identity))
        else:
            self.say(_NO_TRACK)

    def current_track(self) -> Track | None:
        """The track that was clicked last, else that of the selected record."""
        found = self._track(self.canvas.scene.current)
        if found is None and self.canvas.scene.selected is not None:
            found = self.canvas.scene.selected.track
        return found

    def _track(self, identity: str) -> Track | None:
        trace = self.session.trace
        if trace is None:
            return None
        return next((track for track in trace.index(Tracks).tracks if track.identity == identity), None)

    def track_choices(self) -> list[tuple[str, str]]:
        """(identity, text) of every track, for a list to choose from."""
        trace = self.session.trace
        if trace is None:
            return []
        tracks = trace.index(Tracks)
        titles = {group.identity: group.title for group in tracks.groups}
        return [(track.identity, f"{titles[track.group]} · {track.title} {track.note}") for track in tracks.tracks]

    def go_to_track(self, identity: str) -> None:
        """Unfold, scroll to and make current the track of that identity."""
        track = self._track(identity)
        if track is None:
            return
        if track.group in self.arrangement.folded:
            self.arrange(replace(self.arrangement, folded=self.arrangement.folded - {track.group}))
        self.canvas.scene.current = identity
        self.canvas.scroll_to(identity)
        self.canvas.update()

    def select_hit(self, hit: Hit | None) -> None:
        """Select what a hit stands for; None clears."""
        trace = self.session.trace
        if hit is None or trace is None:
            self.session.clear_selection()
        else:
            self.session.select(selection_of(self.canvas.scene.trace_of(hit.track) or trace, hit))

    def select_record(self, table: str, row: int) -> None:
        """Select a record of the schema and bring it into view."""
        trace = self.session.trace
        place = None if trace is None else place_of(trace, table, row)
        if place is not None:
            hit = Hit(place[0], 0, table, row, place[1], place[2], 0)
            self.select_hit(hit)
            self.reveal(hit)

    def show_place(self, window: Window, table: str, row: int, device: int) -> None:
        """Let `window` fill the view, with the record there selected; without one (row -1) the counters of `device`."""
        trace = self.session.trace
        if trace is None:
            return
        margin = max(window.length // 8, 20)
        self.session.look(Window(window.start - margin, window.end + margin))
        if row >= 0:
            self.select_record(table, row)
            return
        counters = [track for track in trace.index(Tracks).tracks if track.kind == "counter"]
        of_device = [track for track in counters if int(trace["series"]["device"][track.key]) == device]
        if of_device:
            self.session.select(Selection(device=device))
            self.go_to_track(of_device[0].identity)

    def open_hit(self, hit: Hit) -> None:
        """Select a record and let it fill the view."""
        self.select_hit(hit)
        margin = max((hit.end - hit.start) // 8, 20)
        self.session.look(Window(hit.start - margin, hit.end + margin))

    def reveal(self, hit: Hit) -> None:
        """Bring a record into view: its track, and its time at the zoom that is on."""
        window = self.session.window
        if hit.end < window.start or hit.start > window.end:
            middle = (hit.start + min(hit.end, hit.start + window.length)) // 2
            start = middle - window.length // 2
            self.canvas.gestures.look(Window(start, start + window.length))
        if hit.track.group in self.arrangement.folded:
            self.arrange(replace(self.arrangement, folded=self.arrangement.folded - {hit.track.group}))
        self.canvas.scroll_to(hit.track.identity)


def selection_of(trace: Trace, hit: Hit) -> Selection:
    """What everybody is told when a record is selected."""
    track = hit.track
    if hit.source == "causes":
        slices, gaps = trace.index(Causes).devices[track.key], trace.index(Gaps).devices[track.key]
        thread = int(slices.thread[hit.row])
        gap = int(gaps.start[int(slices.gap[hit.row])])
        return Selection(device=track.key, gap=gap, thread=thread if thread >= 0 else None)
    if hit.source == "iterations":
        found = trace.index(Iterations)
        process = int(found.process[hit.row])
        return Selection(iteration=int(found.number[hit.row]), process=process if process >= 0 else None)
    if hit.source == "busy":
        return Selection(device=track.key)
    table = "kernels" if hit.source == "graph launch" else hit.source
    if table not in trace.tables:
        return NOTHING
    name = int(trace[table]["name"][hit.row])
    if table in WORK_TABLES:
        stream = int(trace[table]["stream"][hit.row])
        streams = trace["streams"]
        return Selection(
            table=table,
            row=hit.row,
            name=name,
            stream=stream,
            device=int(streams["device"][stream]),
            process=int(streams["process"][stream]),
        )
    thread = int(trace[table]["thread"][hit.row])
    return Selection(
        table=table, row=hit.row, name=name, thread=thread, process=int(trace["threads"]["process"][thread])
    )
