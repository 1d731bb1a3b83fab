"""The server's clocks on ours: a wall clock without a zone, and a steady one of perhaps another machine."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from inspector.trace.quality import Quality

_STAMP = re.compile(r"(\d\d)-(\d\d)-(\d{4}) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_EPOCH = datetime.datetime(1970, 1, 1)
_QUARTER_NS = 15 * 60 * 10**9
_DAY_NS = 86_400 * 10**9
# What clocks may differ by without a word: the resolution of the stamps and of the pairing.
_TOLERANCE_NS = 2_000_000
_LATE_NS = 60 * 10**9


class WallClock:
    """Stamps like '12-31-2025 23:59:59.123456', local to the server, of a zone that nobody tells.

    The zone is the quarter of an hour that brings the newest stamp nearest to its arrival. A server whose clock is
    ahead of ours would give records of the future: its stamps are then moved by as much.
    """

    def __init__(self, quality: Quality) -> None:
        self._quality = quality
        self._zone: int | None = None
        self._ahead = 0

    def settle(self, stamps: Sequence[object], epoch_ns: int) -> None:
        """Learn from the stamps of one answer, oldest first, that came at `epoch_ns`."""
        known = [ns for ns in map(parse_stamp, stamps) if ns is not None]
        if not known:
            return
        newest = max(known)
        if self._zone is None or abs(epoch_ns - newest - self._zone) > _QUARTER_NS // 2:
            first = self._zone is None
            self._zone = round((epoch_ns - newest) / _QUARTER_NS) * _QUARTER_NS
            text = "times of iterations are the server's wall clock, whose zone was found from when they arrived"
            self._quality.add("assumed" if first else "clock", text)
        ahead = newest + self._zone - epoch_ns
        if ahead > max(self._ahead, _TOLERANCE_NS):
            self._ahead = ahead
            self._quality.add("clock", "the server's wall clock is ahead of this one: its times were moved")

    def monotonic(self, stamp: object, received_ns: int, epoch_ns: int) -> int | None:
        """CLOCK_MONOTONIC of a stamp in an answer that came at those times; None for what is no stamp."""
        ns = parse_stamp(stamp)
        if ns is None or self._zone is None:
            return None
        return ns + self._zone - self._ahead - epoch_ns + received_ns


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
        if transmit < receive or error < 0:
            self._quality.add("clock", "answers about the server's steady clock that cannot be")
            return
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
