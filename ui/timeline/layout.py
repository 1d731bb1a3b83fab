"""Where each track stands: order, pins and folds of a trace, and from them positions in pixels. No Qt."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inspector.picture.tracks import Group, Track, Tracks

GROUP_HEIGHT = 24
_HEIGHTS = {"busy": 36, "causes": 20, "counter": 36}
_LANE_HEIGHTS = {"stream": 16, "iterations": 16, "calls": 13, "ranges": 13, "marks": 13, "os": 13, "profiler": 13}
# A track does not get taller than this or half the room; its lanes get thinner instead, and nothing is hidden.
_MOST = 208
_TELLING = ("SMs Active", "SM Active", "GR Active")
_MANY_COUNTERS = 3
_ROOMY = 1.6
# A track that is shown out of its place for a while gets no more than this.
_MOST_LIFTED = 60
SEPARATOR = 4
BRACKET_HEIGHT = 5
PADDING = 3


@dataclass(frozen=True)
class Arrangement:
    """How the user likes the tracks of one trace: folded tracks and groups, those at full height whatever their lanes
    need, pinned tracks in their order, and the order of those that were moved. All by identity.
    """

    folded: frozenset[str] = frozenset()
    full: frozenset[str] = frozenset()
    pinned: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, kept: Any, tracks: Tracks) -> Arrangement:
        """From what `kept` of another session; what is not as it should be is left out. At first, groups of many
        counters are folded, and what is aside.
        """
        if not isinstance(kept, dict):
            counters = Counter(track.group for track in tracks.tracks if track.group.startswith("counters"))
            many = frozenset(group for group, number in counters.items() if number > _MANY_COUNTERS)
            return cls(many).with_new(tracks, ())
        lists = {
            key: tuple(item for item in value if isinstance(item, str))
            for key, value in kept.items()
            if isinstance(value, list)
        }
        folded, full = frozenset(lists.get("folded", ())), frozenset(lists.get("full", ()))
        return cls(folded, full, lists.get("pinned", ()), lists.get("order", ()))

    def to_keep(self) -> dict[str, list[str]]:
        """JSON values for `of`."""
        sets = {"folded": sorted(self.folded), "full": sorted(self.full)}
        return {**sets, "pinned": list(self.pinned), "order": list(self.order)}

    def with_new(self, tracks: Tracks, before: Sequence[Group]) -> Arrangement:
        """With those groups folded that are aside and were not there `before`."""
        known = {group.identity for group in before}
        new = {group.identity for group in tracks.groups if group.is_aside and group.identity not in known}
        return replace(self, folded=self.folded | new)

    def toggle_fold(self, identity: str) -> Arrangement:
        """Fold or unfold a track or a group."""
        return replace(self, folded=self.folded ^ {identity})

    def toggle_full(self, identity: str) -> Arrangement:
        """Give every lane of a track its full height, or no more than is usual."""
        return replace(self, full=self.full ^ {identity}, folded=self.folded - {identity})

    def toggle_pin(self, identity: str) -> Arrangement:
        """Pin a track under the ruler, or let it go."""
        if identity in self.pinned:
            return replace(self, pinned=tuple(other for other in self.pinned if other != identity))
        return replace(self, pinned=(*self.pinned, identity))

    def unfolded(self) -> Arrangement:
        """Everything unfolded."""
        return replace(self, folded=frozenset())

    def unordered(self) -> Arrangement:
        """Every track in its first place."""
        return replace(self, order=())

    def moved(self, tracks: Sequence[Track], identity: str, before: str | None) -> Arrangement:
        """`identity` now stands before the track `before` of its group (None: last)."""
        moving = next(track for track in tracks if track.identity == identity)
        names = [track.identity for track in self.ordered(tracks) if track.group == moving.group]
        names.remove(identity)
        names.insert(names.index(before) if before in names else len(names), identity)
        others = tuple(name for name in self.order if name not in names)
        return replace(self, order=(*others, *names))

    def ordered(self, tracks: Sequence[Track]) -> list[Track]:
        """The tracks of each group in the user's order; those never moved keep their place at the group's end."""
        place = {name: at for at, name in enumerate(self.order)}
        groups: dict[str, list[Track]] = {}
        for track in tracks:
            groups.setdefault(track.group, []).append(track)
        return [
            track
            for mine in groups.values()
            for track in sorted(mine, key=lambda each: place.get(each.identity, len(place)))
        ]


@dataclass(frozen=True)
class Row:
    """A track or the bar of a group at `top` (pixels from the top of its area), `height` high.

    `summary` is the track that stands for the others in the bar of a folded group; `lifted` says that the track is
    shown out of its place.
    """

    top: int
    height: int
    track: Track | None = None
    group: Group | None = None
    folded: bool = False
    summary: Track | None = None
    lifted: bool = False

    @property
    def identity(self) -> str:
        """That of its track or group."""
        if self.track is not None:
            return self.track.identity
        return self.group.identity if self.group is not None else ""

    @property
    def shown(self) -> Track | None:
        """The track that is painted in it."""
        return self.track or self.summary


@dataclass(frozen=True)
class Lifted:
    """A track that is shown right below another one for as long as both are of interest, by identity."""

    identity: str
    below: str


@dataclass(frozen=True)
class Layout:
    """Pinned rows from the top of the canvas, and the rows that scroll below them."""

    pinned: tuple[Row, ...]
    rows: tuple[Row, ...]
    pinned_height: int
    height: int

    def visible(self, top: int, bottom: int) -> list[Row]:
        """The scrolling rows that touch [top, bottom) of their area."""
        first = max(bisect_right([row.top for row in self.rows], top) - 1, 0)
        found = []
        for row in self.rows[first:]:
            if row.top >= bottom:
                break
            if row.top + row.height > top:
                found.append(row)
        return found

    def find(self, identity: str) -> Row | None:
        """The row of a track or group in the scrolling part; None where a fold hides it."""
        return next((row for row in self.rows if row.identity == identity), None)


def lay_out(
    tracks: Tracks,
    arrangement: Arrangement,
    lanes: Callable[[Track], tuple[int, bool]],
    scale: float = 1.0,
    room: int = 0,
    lifted: Lifted | None = None,
) -> Layout:
    """Positions of all rows. `lanes(track)` says how many lanes it has and whether there are brackets over them.

    Where less than `room` pixels are needed, tracks get up to _ROOMY times as high.
    """
    most = max(_MOST, int(room / scale) // 2)
    made = _laid_out(tracks, arrangement, lanes, scale, 1.0, most, lifted)
    needed = made.height + made.pinned_height
    if needed >= room:
        return made
    bars = sum(row.height for row in made.rows if row.group is not None)
    stretch = min((room - bars) / max(needed - bars, 1), _ROOMY)
    return _laid_out(tracks, arrangement, lanes, scale, stretch, most, lifted)


def _laid_out(
    tracks: Tracks,
    arrangement: Arrangement,
    lanes: Callable[[Track], tuple[int, bool]],
    scale: float,
    stretch: float,
    most: int,
    lifted: Lifted | None,
) -> Layout:
    def height(track: Track) -> int:
        folded = track.identity in arrangement.folded
        limit = None if track.identity in arrangement.full else most
        return int(track_height(track, *lanes(track), folded, limit) * scale * (1 if folded else stretch))

    known = {track.identity: track for track in tracks.tracks}
    pinned: list[Row] = []
    top = 0
    for identity in arrangement.pinned:
        if identity in known:
            pinned.append(Row(top, height(known[identity]), known[identity], folded=identity in arrangement.folded))
            top += pinned[-1].height
    pinned_height = top + (round(SEPARATOR * scale) if pinned else 0)
    rows: list[Row] = []
    top = 0
    bar = round(GROUP_HEIGHT * scale)
    by_group: dict[str, list[Track]] = {}
    shown = {row.identity for row in pinned}
    if lifted is not None and (lifted.identity in shown or lifted.identity not in known):
        lifted = None
    if lifted is not None:
        shown.add(lifted.identity)
    for track in arrangement.ordered(tracks.tracks):
        if track.identity in shown:
            continue
        by_group.setdefault(track.group, []).append(track)
    for group in tracks.groups:
        folded = group.identity in arrangement.folded
        mine = by_group.get(group.identity, [])
        # Iterations are a group of one, which needs no bar of its own.
        barred = group.identity != "iterations"
        if barred:
            summary = _summary(mine) if folded and not group.is_aside else None
            rows.append(Row(top, bar, group=group, folded=folded, summary=summary))
            top += bar
        for track in mine if not (folded and barred) else ():
            rows.append(Row(top, height(track), track, folded=track.identity in arrangement.folded))
            top += rows[-1].height
            if lifted is not None and track.identity == lifted.below:
                guest = known[lifted.identity]
                most_ = min(height(guest), round(_MOST_LIFTED * scale))
                rows.append(Row(top, most_, guest, folded=guest.identity in arrangement.folded, lifted=True))
                top += most_
    return Layout(tuple(pinned), tuple(rows), pinned_height, top)


def _summary(tracks: Sequence[Track]) -> Track | None:
    """The one track that says most of a group; of counters the one of the multiprocessors where there is one."""
    for kind in ("busy", "calls", "ranges", "counter"):
        mine = [track for track in tracks if track.kind == kind]
        if mine:
            return next((track for track in mine if track.title.startswith(_TELLING)), mine[0])
    return None


def track_height(track: Track, lanes: int, brackets: bool, folded: bool, most: int | None) -> int:
    """Height of a track in unscaled pixels, `most` at most. Folded, its lanes share the height of one."""
    if track.kind in _HEIGHTS:
        return _HEIGHTS[track.kind] if not folded else 12
    lane = _LANE_HEIGHTS[track.kind]
    bracket = BRACKET_HEIGHT if brackets else 0
    if folded:
        return lane // 2 + 4 + 2 * PADDING
    least = 24 if track.kind == "stream" else 20
    wanted = max(lane * max(lanes, 1) + bracket + 2 * PADDING, least)
    return wanted if most is None else min(wanted, most)


def lane_spans(row: Row, lanes: int, brackets: bool, scale: float) -> list[tuple[int, int]]:
    """(top, bottom) of every lane inside a row, in pixels from the row's top, the space of brackets left out."""
    first = round((PADDING + (BRACKET_HEIGHT if brackets and not row.folded else 0)) * scale)
    last = row.height - round(PADDING * scale)
    many = max(lanes, 1)
    edges = [first + (last - first) * at // many for at in range(many + 1)]
    # Lanes of some height keep a line between them.
    gap = 1 if (last - first) // many >= 4 else 0
    return [(edges[at], max(edges[at + 1] - gap, edges[at] + 1)) for at in range(many)]
