"""When every kernel of CUDA graphs is recorded for a while: at fixed times, when steps become slow, or by request."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from inspector.errors import Usage

_SECOND = 1_000_000_000
LONGEST_S = 60.0
"""The kernel tap takes a longer burst for nonsense."""
_USUAL = 64
"""The last steps that are what is usual, and how many there must be."""
_SLOW = 2.0
_REST_S = 10.0
"""After a burst that slow steps began, before they can begin another: its own cost makes steps slow."""


@dataclass(frozen=True)
class Rule:
    """Bursts of `seconds`: one every `every` seconds (0: not by time), and one when steps become `slow`."""

    seconds: float
    every: float = 0.0
    slow: bool = False

    @classmethod
    def parse(cls, text: str) -> Rule:
        """From "every=5,for=0.2" or "slow,for=0.5". Raises Usage."""
        every, seconds, slow = 0.0, 0.2, False
        for word in text.split(","):
            key, _, value = word.strip().partition("=")
            if key == "slow" and not value:
                slow = True
            elif key in ("every", "for"):
                try:
                    number = float(value)
                except ValueError:
                    number = -1.0
                if not 0 < number <= (LONGEST_S if key == "for" else 86400):
                    raise Usage(f"{word.strip()!r} is no time of bursts", "", f"for= takes up to {LONGEST_S:.0f} s")
                every, seconds = (number, seconds) if key == "every" else (every, number)
            else:
                raise Usage(f"{word.strip()!r} is no rule for bursts", "", "as in every=5,for=0.2 or slow,for=0.5")
        if not every and not slow:
            raise Usage(f"{text!r} does not say when", "", "add every=SECONDS, or slow")
        if every and every <= seconds:
            raise Usage("the bursts would follow each other without a break", "", "choose every= longer than for=")
        return cls(seconds, every, slow)


class Bursts:
    """Until when single kernels are wanted, as `rule` (None: only by request) and requests have it.

    Times are CLOCK_MONOTONIC, ns. `count` bursts have begun.
    """

    def __init__(self, rule: Rule | None, start_ns: int) -> None:
        self.until_ns = 0
        self.count = 0
        self._rule = rule
        self._due_ns = start_ns + round(rule.every * _SECOND) if rule is not None and rule.every else None
        self._rested_ns = start_ns
        self._usual: deque[int] = deque(maxlen=_USUAL)

    def request(self, now_ns: int, seconds: float) -> None:
        """One burst from now on; a running one is made longer, never shorter. Raises Usage."""
        if not 0 < seconds <= LONGEST_S:
            raise Usage("no such burst", "", f"choose up to {LONGEST_S:.0f} s")
        self.count += now_ns >= self.until_ns
        self.until_ns = max(self.until_ns, now_ns + round(seconds * _SECOND))

    def tick(self, now_ns: int, durations: Iterable[int] = ()) -> None:
        """Go on with the rule; `durations` (ns) of the steps that ended since the last call."""
        rule = self._rule
        slow = self._is_slow(durations)
        if rule is None:
            return
        if self._due_ns is not None and now_ns >= self._due_ns:
            self.request(now_ns, rule.seconds)
            every = round(rule.every * _SECOND)
            self._due_ns += every * (1 + (now_ns - self._due_ns) // every)
        if rule.slow and slow and now_ns >= self._rested_ns:
            self.request(now_ns, rule.seconds)
            self._rested_ns = self.until_ns + round(_REST_S * _SECOND)

    def _is_slow(self, durations: Iterable[int]) -> bool:
        """Whether a step took twice as long as the median of the steps before it."""
        slow = False
        for duration in durations:
            if len(self._usual) == _USUAL:
                slow |= duration > _SLOW * statistics.median(self._usual)
            self._usual.append(duration)
        return slow
