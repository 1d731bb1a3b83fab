"""The timeline: what every stream, copy and host thread did, and why a device was idle, at any zoom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from PySide6.QtCore import QPoint
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from inspector.picture.search import Filter, Hits
from inspector.picture.timeline import Hit, Picture
from inspector.picture.tracks import Track, Tracks
from inspector.picture.viewport import Viewport
from inspector.trace.selection import NOTHING, Selection, Window
from inspector.trace.trace import Trace
from ui.export import Rows
from ui.questions import Question
from ui.timeline.asking import (
    DERIVED,
    Asking,
    hits_question,
    overview_question,
    panel_question,
    partners_question,
    tracks_question,
)
from ui.timeline.canvas import Canvas
from ui.timeline.gap_in_view import GapInView
from ui.timeline.layout import Arrangement, lay_out
from ui.timeline.menu import menu_for
from ui.timeline.overview import OverviewStrip
from ui.timeline.panel import HEIGHT as PANEL_HEIGHT
from ui.timeline.panel import Panel
from ui.timeline.records import records
from ui.timeline.resolve import device_of, late_thread, record, resolve
from ui.timeline.scene import LEAST_HEIGHT
from ui.timeline.searchbar import SearchBar
from ui.timeline.tip import tip
from ui.views.view import Host, Need, State

_EVENT_TABLES = ("kernels", "memcpys", "memsets", "graphs", "host_calls", "ranges", "os_calls", "counters")


class Timeline(GapInView):
    """Overview, search bar, tracks, and the panel below."""

    ID: ClassVar[str] = "timeline"
    TITLE: ClassVar[str] = "Timeline"
    NEEDS: ClassVar[tuple[Need, ...]] = (Need(_EVENT_TABLES, "This trace holds no events in time"),)

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(host, parent)
        self.arrangement = Arrangement()
        self.hits: Hits | None = None
        self._pictures: dict[str, Picture] = {}
        self._lanes: dict[str, tuple[int, bool]] = {}
        self._asking = Asking(host.asker, host.session.rounds, self._answer, self._failed)
        self.overview = OverviewStrip(host.theme, host.session, self.content)
        self.search_bar = SearchBar(host.theme, self.content)
        self.canvas = Canvas(host.theme, self._tip, self.content)
        self.panel = Panel(host.theme, self.content)
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for widget, stretch in ((self.search_bar, 0), (self.overview, 0), (self.canvas, 1), (self.panel, 0)):
            layout.addWidget(widget, stretch)
        self.paint_background()
        self._connect()

    def _connect(self) -> None:
        session, canvas = self.session, self.canvas
        self.overview.looked.connect(session.look)
        canvas.looked.connect(session.look)
        canvas.ranged.connect(self._ranged)
        canvas.picked.connect(self._picked)
        canvas.opened.connect(self.open_hit)
        canvas.folded.connect(lambda identity: self.arrange(self.arrangement.toggle_fold(identity)))
        canvas.moved.connect(self._move)
        canvas.made_current.connect(self._make_current)
        canvas.asked_menu.connect(self._menu)
        canvas.scrolled.connect(self.refresh)
        canvas.scrolled_by_hand.connect(self._let_go)
        canvas.resized.connect(self._resized)
        self.search_bar.changed.connect(self._filter_changed)
        self.search_bar.stepped.connect(lambda by: self.next_hit() if by > 0 else self.previous_hit())
        self.search_bar.closed.connect(self.canvas.setFocus)
        self.panel.named.connect(lambda name: session.select(NOTHING.but(name=name, window=session.selection.window)))
        session.window_changed.connect(self._window_changed)
        session.selection_changed.connect(self._selection_changed)
        session.marks_changed.connect(self._marks_changed)

    # What is asked, and what comes back.

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """The tracks in view and a screen above and below, but those that need an analysis."""
        viewport = Viewport(window, self.canvas.scene.viewport.width)
        near, wanted = tuple(self._near(derived=False)), self._wanted(selection)
        question = tracks_question(trace, viewport.grid(), near, wanted)
        # Of a run only what is new has to be looked at.
        return replace(question, prompt=self.session.live.is_on and not wanted)

    def _wanted(self, selection: Selection) -> Filter:
        if self.search_bar.filter or selection.name is None or selection.row is not None:
            return self.search_bar.filter
        return Filter(name=selection.name)

    def _near(self, derived: bool) -> Iterator[Track]:
        scene = self.canvas.scene
        # Whole screens, so that scrolling a little asks nothing new.
        page = max(scene.height - scene.top, 1)
        first = scene.scroll // page - 1
        rows = scene.layout.visible(first * page, (first + 4) * page)
        for row in (*scene.layout.pinned, *rows):
            if row.shown is not None and (row.shown.kind in DERIVED) == derived:
                yield row.shown

    def refresh(self) -> None:
        """Ask for the tracks, then for what takes longer."""
        super().refresh()
        trace = self.session.trace
        if trace is None or not self.isVisible() or not self.canvas.scene.layout.rows:
            return
        rests = self.session.is_advancing and self.session.live.is_on
        due = not rests or self.session.rounds.is_due(trace.generation)
        if due:
            self._asking.ask_in_turn("overview", overview_question(trace))
        grid = Viewport(self.session.window, self.canvas.scene.viewport.width).grid()
        near = list(self._near(derived=True))
        for kind in DERIVED:
            mine = tuple(track for track in near if track.kind == kind)
            question = tracks_question(trace, grid, mine, Filter())
            if mine and kind == "iterations" and len(trace["iterations"]):
                self._asking.ask(kind, question)
            elif mine and due:
                self._asking.ask_in_turn(kind, question)
        known = set().union(*(made.tracks for made in self._pictures.values()))
        self.canvas.scene.waiting = frozenset(track.identity for track in near if track.identity not in known)

    def show_answer(self, answer: Any) -> None:
        """The tracks in view."""
        self._show_picture("tracks", answer)

    def _answer(self, what: str, answer: Any) -> None:
        if answer is None:
            return
        if what == "overview":
            self.overview.show_answer(answer)
        elif what == "hits":
            self.hits = answer
            self.search_bar.say(f"{len(answer):,} hits" if len(answer) else "no hits")
        elif what == "partners":
            self._link(answer)
        elif what == "panel":
            self.panel.show_answer(answer)
        else:
            self._show_picture(what, answer)

    def _show_picture(self, what: str, answer: Picture) -> None:
        self._pictures[what] = answer
        scene = self.canvas.scene
        scene.pictures = tuple(self._pictures.values())
        scene.waiting -= answer.tracks.keys()
        lanes = {name: (made.num_lanes, bool(made.content.brackets)) for name, made in answer.tracks.items()}
        if any(self._lanes.get(name, (1, False)) != found for name, found in lanes.items()):
            self._lanes |= lanes
            self._lay_out()
        before = scene.selected
        self._resolve()
        if before is None and scene.selected is not None:
            self._say_selected()
        self._keep_gap_in_view()
        if what != "tracks" and self.session.live.state == "live":
            self.canvas.update_soon()
        else:
            self.canvas.update()

    # The session has changed.

    def _grown(self) -> None:
        """A later generation: the pictures stay until there are new ones, and so does what the user did with them."""
        trace, scene = self.session.trace, self.canvas.scene
        if trace is None or scene.trace is None or self.state is State.NO_DATA:
            super()._grown()
            return
        before = scene.trace.index(Tracks)
        scene.trace, scene.selection = trace, self.session.selection
        if trace.index(Tracks).tracks != before.tracks:
            self.arrangement = self.arrangement.with_new(trace.index(Tracks), before.groups)
            self._lay_out()
        self._resolve()
        super()._grown()

    def _trace_changed(self) -> None:
        trace = self.session.trace
        self._asking.forget()
        self._pictures, self._lanes, self.hits = {}, {}, None
        self.search_bar.end()
        self.overview.show_answer(None)
        self.panel.show_answer(None)
        scene = self.canvas.scene
        scene.trace, scene.pictures, scene.selected, scene.linked, scene.hover = trace, (), None, (), None
        scene.selection, scene.marks, scene.current = self.session.selection, self.session.marks, ""
        scene.late, self._lifted, self._keeping = set(), None, False
        self.arrangement = Arrangement()
        if trace is not None:
            self.arrangement = Arrangement.of(self.session.arrangement("tracks"), trace.index(Tracks))
            self._lay_out()
            self.canvas.scroll_to_top()
            self.canvas.set_window(Viewport(self.session.window, scene.viewport.width))
        super()._trace_changed()

    def _window_changed(self) -> None:
        self.say("")
        viewport = Viewport(self.session.window, self.canvas.scene.viewport.width)
        self.canvas.set_window(viewport, self.session.is_advancing)
        scene = self.canvas.scene
        if scene.pointer is not None:
            scene.hover = scene.hit(*scene.pointer) if not self.canvas.gestures.mode else None

    def _selection_changed(self) -> None:
        self.say("")
        scene = self.canvas.scene
        scene.selection = self.session.selection
        scene.selected, scene.linked, scene.late = None, (), set()
        self._resolve()
        trace = self.session.trace
        if trace is None:
            return
        selection = self.session.selection
        if selection.table is not None and selection.row is not None:
            self._asking.ask("partners", partners_question(trace, selection.table, selection.row))
        else:
            self._asking.drop("partners")
        self._keeping = selection.gap is not None and selection.device is not None
        if self._lifted is not None:
            self._lift(None)
        self._unfold_gap(trace)
        self._say_selected()
        self._keep_gap_in_view()
        self.canvas.update()

    def _say_selected(self) -> None:
        """In the panel, and of a gap the thread that was late."""
        trace, scene, selection = self.session.trace, self.canvas.scene, self.session.selection
        if trace is None:
            return
        scene.late = {track.identity for track in late_thread(scene)}
        source, row = (scene.selected.source, scene.selected.row) if scene.selected is not None else ("", -1)
        device = scene.selected.track.key if source == "gaps" and scene.selected is not None else self.session.device
        question = panel_question(trace, selection, device, source, row)
        if question is None:
            self._asking.drop("panel")
            self.panel.show_answer(None)
        else:
            self._asking.ask("panel", question)

    def _marks_changed(self) -> None:
        self.canvas.scene.marks = self.session.marks
        self.canvas.update()

    def _filter_changed(self, wanted: Filter) -> None:
        self.hits = None
        trace = self.session.trace
        if trace is not None and wanted:
            self._asking.ask("hits", hits_question(trace, wanted))
        else:
            self._asking.drop("hits")
        self.refresh()

    def _resolve(self) -> None:
        """Find what is selected on the canvas: its lane is known once its track was made."""
        trace, scene = self.session.trace, self.canvas.scene
        if trace is not None:
            scene.selected = resolve(scene, self.session.selection)
            linked = (record(scene, hit.source, hit.row) for hit in scene.linked)
            scene.linked = tuple(hit for hit in linked if hit is not None)

    def _link(self, partners: list[tuple[str, int]]) -> None:
        trace = self.session.trace
        if trace is not None:
            found = (record(self.canvas.scene, table, row) for table, row in partners)
            self.canvas.scene.linked = tuple(hit for hit in found if hit is not None)
            self.canvas.update()

    # Tracks and what one does with them.

    def arrange(self, arrangement: Arrangement) -> None:
        """Put the tracks in that order, and keep it with the trace."""
        self.arrangement = arrangement
        self.session.arrange("tracks", arrangement.to_keep())
        self._lay_out()
        self.refresh()

    def _lay_out(self) -> None:
        trace = self.session.trace
        if trace is not None:
            # As much as is left when the panel is open, so that rows keep their heights when it opens.
            panel = min(self.theme.px(PANEL_HEIGHT), self.height() * 2 // 5)
            used = self.overview.height() + self.canvas.scene.ruler + panel
            room = self.content.height() - used
            lanes, scale = self.canvas.scene.lanes, self.theme.scale
            self.canvas.set_layout(lay_out(trace.index(Tracks), self.arrangement, lanes, scale, room, self._lifted))

    def _move(self, identity: str, before: str) -> None:
        trace = self.session.trace
        if trace is not None:
            self.arrange(self.arrangement.moved(trace.index(Tracks).tracks, identity, before))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The panel keeps to its share."""
        super().resizeEvent(event)
        self._share_room()

    def _share_room(self) -> None:
        self.panel.set_room(self.height(), self.overview.sizeHint().height() + self.theme.px(LEAST_HEIGHT))

    def _resized(self) -> None:
        self._lay_out()
        self._keep_gap_in_view()
        self.refresh()

    def _picked(self, hit: Hit | None) -> None:
        self.select_hit(hit)
        if hit is None:
            self._say_whose_figures("Nothing is recorded there")

    def _ranged(self, window: Window | None) -> None:
        self.session.select(self.session.selection.but(window=window))
        self._say_whose_figures("The range holds for every track")

    def _say_whose_figures(self, first: str) -> None:
        """Where a track of another device was meant, nobody should take the figures for those of that one."""
        trace, track, device = self.session.trace, self._track(self.canvas.scene.current), self.session.device
        if trace is None or track is None or device < 0:
            return
        if device_of(trace, track) not in (-1, device):
            self.say(f"{first}; the figures stay those of {trace.device_name(device)} (Alt+D: next GPU)")

    def _make_current(self, identity: str) -> None:
        self.canvas.scene.current = identity
        self.canvas.update()

    def _menu(self, place: QPoint, hit: Hit | None, identity: str) -> None:
        menu_for(self, hit, identity).popup(place)

    def _tip(self, hit: Hit) -> list[tuple[str, str]]:
        trace = self.canvas.scene.trace_of(hit.track)
        return [] if trace is None else tip(trace, hit)

    def toggle_details(self) -> None:
        """Show or hide the panel below."""
        self.panel.toggle()

    def escape(self) -> bool:
        """End a drag or the search; False when there was neither."""
        if self.canvas.gestures.cancel():
            self.canvas.update()
            return True
        if self.search_bar.isHidden():
            return False
        self.search_bar.end()
        return True

    # Looks and exports.

    def retheme(self) -> None:
        """Colours, type and heights."""
        self._share_room()
        self._lay_out()
        self._keep_gap_in_view()
        self.canvas.update()

    def rows_for_copy(self) -> Rows | None:
        """What the panel shows; without a selection, the records in view."""
        return self.panel.rows() or self._records_in_view()

    def _records_in_view(self) -> Rows | None:
        """Of all tracks that no fold hides, in sight or not."""
        trace, scene = self.session.trace, self.canvas.scene
        if trace is None or not scene.pictures:
            return None
        rows = (*scene.layout.pinned, *scene.layout.rows)
        return records(trace, [row.track for row in rows if row.track is not None], self.session.window)
