"""Which iterations a dear probe looks at, so that what it writes stays within a budget of records."""

from __future__ import annotations

_STEPS = (1, 2, 3, 5)
_SECOND = 1_000_000_000


def rungs(least: int, most: int) -> list[int]:
    """The round numbers 1, 2, 3, 5, 10, 20 ... from `least` to `most`, `least` among them."""
    found = [step * 10**power for power in range(len(str(most))) for step in _STEPS]
    return sorted({least, *(number for number in found if least <= number <= most)})


class Pace:
    """One whole iteration in n, with n a round number that grows and shrinks with the credit there is.

    `least` is the smallest n. Credit in records starts at `burst`, never exceeds it, and grows by `per_minute`; what
    an iteration wrote is taken from it. An iteration is due when the credit covers as many records as the last one had.
    """

    def __init__(self, least: int, per_minute: int, burst: int) -> None:
        self.least, self.per_minute, self.burst = least, per_minute, burst
        self._rungs = frozenset(rungs(least, 10**9))
        self._since = 0
        self._expected = 1
        self._credit = float(burst)
        self._seen_ns = -1

    def due(self, now_ns: int) -> int:
        """Count an iteration that begins at `now_ns`: n when it is one in n to be looked at, 0 when it is not."""
        self._since += 1
        if self._seen_ns >= 0:
            earned = (now_ns - self._seen_ns) * self.per_minute / (60 * _SECOND)
            self._credit = min(float(self.burst), self._credit + earned)
        self._seen_ns = now_ns
        if self._since not in self._rungs or self._credit < min(self._expected, self.burst):
            return 0
        seen, self._since = self._since, 0
        return seen

    def skip(self) -> None:
        """Count an iteration that is not to be looked at, whatever the credit."""
        self._since += 1

    def spent(self, records: int) -> None:
        """The iteration that was due wrote so many `records`."""
        self._expected = max(records, 1)
        self._credit -= records
