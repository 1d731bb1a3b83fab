"""What the timeline asks for, in which order: the tracks in view first, then what needs an analysis, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from inspector.picture.details import details, range_statistics
from inspector.picture.navigate import launch_of, launched_by
from inspector.picture.overview import overview
from inspector.picture.search import Filter, hits
from inspector.picture.timeline import picture
from inspector.picture.tracks import Kind, Track
from inspector.picture.viewport import Grid
from inspector.trace.schema import WORK_TABLES
from inspector.trace.selection import Selection
from inspector.trace.trace import Trace
from ui.pace import Rounds
from ui.questions import Asker, Failure, Question

# Their analyses take long on a large trace, so they are asked one after the other and never hold up the rest.
DERIVED: tuple[Kind, ...] = ("busy", "iterations", "causes")
OVERVIEW_COLUMNS = 4096
_MOST_PARTNERS = 64


class Asking:
    """The side questions of the timeline. `show(what, answer)` is called with each answer on the GUI thread."""

    def __init__(
        self, asker: Asker, rounds: Rounds, show: Callable[[str, Any], None], fail: Callable[[Failure], None]
    ) -> None:
        self._asker, self._rounds, self._show, self._fail = asker, rounds, show, fail
        self._asked: dict[str, Hashable] = {}
        self._waiting: dict[str, Question] = {}
        self._running = ""

    def forget(self) -> None:
        """Another trace: nothing that was asked is of interest."""
        for what in list(self._asked):
            self._asker.forget((self, what))
            self._rounds.end((self, what))
        self._asked, self._waiting, self._running = {}, {}, ""

    def ask(self, what: str, question: Question) -> None:
        """Ask at once, unless the same was asked last under that name."""
        if self._asked.get(what) != question.key:
            self._asked[what] = question.key
            self._asker.ask((self, what), question, lambda answer: self._show(what, answer), self._fail)

    def drop(self, what: str) -> None:
        """Its answer is not wanted any more."""
        if self._asked.pop(what, None) is not None:
            self._asker.forget((self, what))

    def ask_in_turn(self, what: str, question: Question) -> None:
        """Ask when the ones asked this way before are done; a newer one takes the place of one that waits."""
        if self._asked.get(what) == question.key:
            return
        self._asked[what] = question.key
        self._waiting[what] = question
        self._rounds.begin((self, what))
        self._next()

    def _next(self) -> None:
        if self._running or not self._waiting:
            return
        what = next(iter(self._waiting))
        question = self._waiting.pop(what)
        self._running = what

        def done(answer: Any) -> None:
            self._done(what)
            self._show(what, answer)
            self._next()

        def failed(failure: Failure) -> None:
            self._done(what)
            self._fail(failure)
            self._next()

        self._asker.ask((self, what), question, done, failed)

    def _done(self, what: str) -> None:
        self._running = ""
        if what not in self._waiting:
            self._rounds.end((self, what))


def tracks_question(trace: Trace, grid: Grid, tracks: tuple[Track, ...], wanted: Filter) -> Question:
    """A picture of those tracks."""
    key = (id(trace), trace.generation, grid, tuple(track.identity for track in tracks), wanted)
    return Question(picture, (trace, grid, tracks, wanted), key)


def overview_question(trace: Trace) -> Question:
    """The strip at the top."""
    return Question(overview, (trace, OVERVIEW_COLUMNS), (id(trace), trace.generation))


def hits_question(trace: Trace, wanted: Filter) -> Question:
    """All records that a filter lets through."""
    return Question(hits, (trace, wanted), (id(trace), trace.generation, wanted))


def partners_question(trace: Trace, table: str, row: int) -> Question:
    """What launched a record, or what a call launched."""
    return Question(partners, (trace, table, row), (id(trace), trace.generation, table, row))


def partners(trace: Trace, table: str, row: int) -> list[tuple[str, int]]:
    """(table, row) of the launch call of work, or of the first records that a call launched."""
    if table in WORK_TABLES:
        call = launch_of(trace, table, row)
        return [("host_calls", call)] if call >= 0 else []
    return launched_by(trace, row)[:_MOST_PARTNERS] if table == "host_calls" else []


def panel_question(trace: Trace, selection: Selection, device: int, source: str, row: int) -> Question | None:
    """What stands in the panel: details of the record, else statistics of the selected range; None for neither."""
    if source:
        key: Hashable = (id(trace), trace.generation, source, row, device)
        return Question(details, (trace, source, row, device), key)
    if selection.window is not None and selection.window.length and device >= 0:
        key = (id(trace), trace.generation, selection.window, device)
        return Question(range_statistics, (trace, selection.window, device), key)
    return None
