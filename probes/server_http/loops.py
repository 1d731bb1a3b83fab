"""Which forward step an iteration record tells of.

The record's number is that of the engine's counter when the record was closed. That is the step itself in the plain
loop, one more with the overlap scheduler (the step is closed after the next one was launched), and one less than the
number of stages more with pipeline parallelism.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from inspector.trace.quality import Quality
from probes.server_http.reading import Json, whole

_STAGES = ("pp_size", "pipeline_parallel_size")
_PLAIN = "disable_overlap_scheduler"
_MODES = {"overlap": 1, "non_overlap": 0}
_MOST_STAGES = 1024
_MOST_VALUES = 10_000
_UNTOLD = (
    "iterations have the numbers of the server's records: it does not tell its loop; with the overlap scheduler, its "
    "default, the forward step of a record is one less, with n pipeline stages n - 1 less"
)


class Loop:
    """What is known of the server's loop: from its settings, and from each record that tells."""

    def __init__(self, quality: Quality) -> None:
        self._quality = quality
        self._stages = 0
        self._is_plain: bool | None = None
        self._was_told = False

    def learn(self, settings: object) -> None:
        """Take from settings, nested as they may be, what they tell of the loop. What was told before holds."""
        for found in _mappings(settings):
            for key in _STAGES:
                stages = whole(found, key, _MOST_STAGES)
                if stages <= 0 and isinstance(found.get(key), str) and str(found[key])[:4] in _NUMBERS:
                    stages = _NUMBERS[str(found[key])[:4]]
                if stages > 0 and not self._stages:
                    self._stages = stages
            if isinstance(found.get(_PLAIN), bool) and self._is_plain is None:
                self._is_plain = found[_PLAIN]

    @property
    def lag(self) -> int | None:
        """By how much a record's number exceeds its step's; None where that is not known."""
        if self._stages > 1:
            return self._stages - 1
        return None if self._is_plain is None else int(not self._is_plain)

    def step(self, iteration: int, record: Json) -> int:
        """The forward step of a record; its own number where the loop is not known, which is noted."""
        mode = record.get("schedulerMode")
        lag = self.lag
        if self._stages <= 1 and isinstance(mode, str) and mode in _MODES:
            lag = _MODES[mode]
        if lag is None:
            if not self._was_told:
                self._was_told = True
                self._quality.add("assumed", _UNTOLD)
            return iteration
        # Records of the first steps have numbers as the counter had them: no step is before 0.
        return iteration - lag if iteration >= lag else iteration


_NUMBERS = {str(stages): stages for stages in range(1, _MOST_STAGES + 1)}


def _mappings(value: object) -> Iterable[Mapping[Any, Any]]:
    """All objects in a value, outer ones first, in bounds."""
    waiting, looked = [value], 0
    while waiting and looked < _MOST_VALUES:
        found, looked = waiting.pop(0), looked + 1
        if isinstance(found, Mapping):
            yield found
            waiting.extend(inner for inner in found.values() if isinstance(inner, Mapping | list))
        elif isinstance(found, list):
            waiting.extend(inner for inner in found if isinstance(inner, Mapping | list))
