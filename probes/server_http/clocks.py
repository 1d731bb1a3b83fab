"""The server's clocks on ours: a wall clock without a zone, and a steady one of perhaps another machine."""

from __future__ import annotations

import datetime
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from inspector.trace.quality import Quality

_STAMP = re.compile(r"(\d\d)-(\d\d)-(\d{4}) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_EPOCH = datetime.datetime(1970, 1, 1)
_QUARTER_NS = 15 * 60 * 10**9
_DAY_NS = 86_400 * 10**9
# What clocks may differ by without a word: the resolution of the stamps and of the pairing.
_TOLERANCE_NS = 2_000_000
# Seconds in floating point, of a machine that runs for months.
_RESOLUTION_NS = 1000
_LATE_NS = 60 * 10**9
# A recording holds what lies within a day.
_OLDEST_NS = _DAY_NS // 2
# Iterations of micro-batches may be told a little out of order.
_SLACK_NS = 10**9
_FOUND = "times of iterations are the server's wall clock, whose zone was found from when they arrived"
_AHEAD = "the server's wall clock is ahead of this one: its times were moved"


class WallClock:
    """Stamps like '12-31-2025 23:59:59.123456', local to the server, of a zone that nobody tells.

    The zone is the quarter of an hour that brings the newest stamp nearest to its arrival. A server whose clock is
    ahead of ours would give records of the future: its stamps are then moved by as much.

    A stamp that cannot be costs the time of its own record only: one out of order with those around it, one of the
    future, one of more than half a day ago. That the server's clock is another one than before is believed when two
    answers in a row say the same.
    """

    def __init__(self, quality: Quality) -> None:
        self._quality = quality
        self._zone: int | None = None
        self._ahead = 0
        self._doubt: int | None = None

    def times(self, stamps: Sequence[object], received_ns: int, epoch_ns: int) -> list[int | None]:
        """CLOCK_MONOTONIC of the stamps of one answer, oldest first, which came at those times on our two clocks; None
        for what is no stamp, or cannot be.
        """
        known = [parse_stamp(stamp) for stamp in stamps]
        trusted = _in_order(known)
        told = [ns for ns, is_trusted in zip(known, trusted, strict=True) if ns is not None and is_trusted]
        if told:
            self._learn(told, epoch_ns)
        zone = self._zone
        if zone is None:
            return [None] * len(known)
        found: list[int | None] = []
        for ns, is_trusted in zip(known, trusted, strict=True):
            age = 0 if ns is None else epoch_ns - (ns + zone - self._ahead)
            can_be = ns is not None and is_trusted and -_TOLERANCE_NS <= age <= _OLDEST_NS
            if ns is not None and not can_be:
                self._quality.add("clock", "times of iterations that cannot be: each is put before the next one")
            found.append(received_ns - age if can_be else None)
        return found

    def _learn(self, told: Sequence[int], epoch_ns: int) -> None:
        newest = told[-1]
        if self._zone is None:
            zone = _zone(newest, epoch_ns)
            is_ahead = newest + zone - epoch_ns > _TOLERANCE_NS
            if is_ahead and len(told) > 1 and newest - told[-2] > _LATE_NS and told[-2] + zone <= epoch_ns:
                newest = told[-2]
            self._believe(newest - epoch_ns, "assumed", _FOUND)
            return
        lead = newest - epoch_ns
        now = lead + self._zone - self._ahead
        if _TOLERANCE_NS < now <= _SLACK_NS:
            # The newest stamp until now had waited longer before it was told.
            self._ahead, now = self._ahead + now, 0
            self._quality.add("clock", _AHEAD)
        is_other = now > _TOLERANCE_NS or now < -_QUARTER_NS // 2 or (self._ahead > 0 and now < -_LATE_NS)
        if not is_other:
            self._doubt = None
        elif self._doubt is None or abs(lead - self._doubt) > _LATE_NS:
            self._doubt = lead
        else:
            self._believe(max(lead, self._doubt), "clock", "the server's wall clock is another one than before")

    def _believe(self, lead: int, code: str, text: str) -> None:
        """`lead` is the server's clock less ours, as the newest stamp tells it."""
        zone = _zone(lead, 0)
        self._quality.add(code, text)
        ahead = lead + zone if lead + zone > _TOLERANCE_NS else 0
        if ahead > self._ahead:
            self._quality.add("clock", _AHEAD)
        self._zone, self._ahead, self._doubt = zone, ahead, None


def _zone(newest: int, epoch_ns: int) -> int:
    return round((epoch_ns - newest) / _QUARTER_NS) * _QUARTER_NS


def _in_order(stamps: Sequence[int | None]) -> list[bool]:
    """Which belong to the longest run of them that never goes back, or lie less than a second from it."""
    told = [(row, ns) for row, ns in enumerate(stamps) if ns is not None]
    forth = _longest(told)
    back = [(row, -ns) for row, ns in reversed(_longest([(row, -ns) for row, ns in reversed(told)]))]
    # Of two as long, that in which less time goes by has no wild stamp at an end.
    members = min(forth, back, key=lambda run: run[-1][1] - run[0][1]) if told else []
    found = [False] * len(stamps)
    places = [row for row, _ in members]
    for row, ns in told:
        at = bisect_left(places, row)
        low = members[at - 1][1] if at else ns
        high = members[at][1] if at < len(members) else ns
        found[row] = low - _SLACK_NS <= ns <= high + _SLACK_NS
    return found


def _longest(told: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run that never goes back, of (row, ns), with its smallest values."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for at, (_, ns) in enumerate(told):
        place = bisect_right(tails, ns)
        before.append(ends[place - 1] if place else -1)
        tails[place : place + 1], ends[place : place + 1] = [ns], [at]
    run = []
    at = ends[-1] if ends else -1
    while at >= 0:
        run.append(told[at])
        at = before[at]
    return run[::-1]


class SteadyClock:
    """Seconds of the server's steady clock, which is CLOCK_MONOTONIC of its machine.

    Where the server tells that clock, it is compared with ours. Where it does not, times of this machine are ours as
    they are; elsewhere, or behind a tunnel, the newest of the first answer is taken for the moment of its arrival.
    """

    def __init__(self, quality: Quality, is_here: bool) -> None:
        self._quality = quality
        self._is_here = is_here
        self._offset: int | None = None
        self._error: int | None = None
        self._asked = 0

    def compare(self, asked_ns: int, received_ns: int, receive_s: float, transmit_s: float) -> None:
        """Learn from a question of `asked_ns`, answered at `received_ns` on our clock, that came to the server and left
        it at those times of its own.
        """
        receive, transmit = round(receive_s * 1e9), round(transmit_s * 1e9)
        error = (received_ns - asked_ns - (transmit - receive)) // 2
        if transmit < receive or error < -_RESOLUTION_NS:
            self._quality.add("clock", "answers about the server's steady clock that cannot be")
            return
        error = max(error, 0)
        offset = (asked_ns - receive + received_ns - transmit) // 2
        if self._is_here and abs(offset) <= error + _TOLERANCE_NS:
            offset = 0
        if self._error is None:
            self._offset, self._error = offset, error
            if offset:
                text = "times of requests are of the server's steady clock, which was compared with this machine's"
                self._quality.add("assumed", text)
        elif abs(offset - (self._offset or 0)) > error + self._error + _TOLERANCE_NS:
            self._offset, self._error = offset, error
            self._quality.add("clock", "the server's steady clock is another one than before: it was compared again")
        elif error < self._error:
            self._offset, self._error = offset, error

    def settle(self, newest_s: float, received_ns: int) -> None:
        """Learn from the newest time in an answer, of which the one before took all that there was."""
        newest = round(newest_s * 1e9)
        before, self._asked = self._asked, received_ns
        if self._error is not None:
            return
        if self._offset is None:
            self._offset = 0
            if not self._is_here or not 0 <= received_ns - newest + _TOLERANCE_NS < _DAY_NS:
                self._offset = received_ns - newest
                text = "times of requests are of another machine's clock: the newest was taken for its arrival"
                self._quality.add("unaligned", text)
        elif newest + self._offset > received_ns + _TOLERANCE_NS:
            self._offset = received_ns - newest
            self._quality.add("clock", "times of requests lay in the future: they were moved")
        elif newest + self._offset < before - _LATE_NS:
            # What has finished since the answer before cannot have done so long before it.
            self._offset = received_ns - newest
            self._quality.add("clock", "times of requests lay far back, as on another machine: they were moved")

    def monotonic(self, seconds: float) -> int:
        """CLOCK_MONOTONIC, ns."""
        return round(seconds * 1e9) + (self._offset or 0)


def parse_stamp(stamp: object) -> int | None:
    """Nanoseconds since 1970 as if the stamp were UTC; None for what is none."""
    match = _STAMP.fullmatch(stamp) if isinstance(stamp, str) else None
    if match is None:
        return None
    month, day, year, hour, minute, second = (int(part) for part in match.groups()[:6])
    if not 1970 <= year < 2200:
        return None
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
    seconds = (moment - _EPOCH) // datetime.timedelta(seconds=1)
    return seconds * 10**9 + int((match[7] or "0").ljust(9, "0"))
