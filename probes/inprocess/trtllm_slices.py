"""Where the kernel tap cannot be built: now and then one whole step of TensorRT-LLM's executor by torch.profiler.

Its first start takes most of a second, and one before CUDA graphs are captured is known to leave some CUPTI without
records: it begins when the engine has been at work for a while. Then a step is captured whenever all of them together
take less than their budget of the time.
"""

from __future__ import annotations

import os
import sys

from .operators import Operators, start
from .producer import Producer

SLICES = "TLLM_INSPECTOR_SLICES"
"""In the environment of a workload that is to have no tap since none could be built."""
_FIRST_STEP = 200


def fallback(producer: Producer) -> StepSlices | None:
    """The capture for this process, where it is wanted and torch has a GPU."""
    torch = sys.modules.get("torch")
    if not os.environ.get(SLICES) or torch is None or not torch.cuda.is_available():
        return None
    return StepSlices(producer)


class StepSlices:
    """All calls come from the executor's thread."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._operators: Operators | None = None
        self._steps = 0
        self._begun_ns = self._start_ns = 0

    def step(self, now: int, budget: float) -> None:
        """A step begins at `now`, and the one before it has ended.

        `budget`: the share of the time that it may take. What the first start takes is not counted.
        """
        self._steps += 1
        if self._steps < _FIRST_STEP:
            return
        if self._operators is None:
            self._operators = start(self._producer, "sampled")
            self._start_ns, self._begun_ns = self._operators.status.cost_ns, now
        self._operators.iteration_end()
        if self._operators.status.cost_ns - self._start_ns <= budget * (now - self._begun_ns):
            self._operators.iteration_begin()
        else:
            self._operators.iteration_skipped()

    def close(self) -> None:
        """End it."""
        if self._operators is not None:
            self._operators.stop()
