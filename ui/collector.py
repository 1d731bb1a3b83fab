"""Python's cyclic collector, on the GUI thread only.

Left alone it runs in whichever thread allocates, and would destroy Qt's objects there.
"""

from __future__ import annotations

import gc
import time

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 500
# A full collection visits every container there is; while a file is read that can be many.
_FULL_EVERY_S = 30.0


class Collector(QObject):
    """Switches automatic collection off while it lives, and collects by a timer of its thread instead."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._was_enabled = gc.isenabled()
        self._full = time.monotonic()
        self._timer = QTimer(self)
        self._timer.setInterval(_EVERY_MS)
        self._timer.timeout.connect(self.collect)
        gc.disable()
        self._timer.start()

    def collect(self) -> int:
        """Collect the oldest generation whose threshold is passed; its number, -1 for none."""
        counts, limits = gc.get_count(), gc.get_threshold()
        now = time.monotonic()
        if counts[2] > limits[2] and now - self._full >= _FULL_EVERY_S:
            self._full = now
            generation = 2
        elif counts[1] > limits[1]:
            generation = 1
        elif counts[0] > limits[0]:
            generation = 0
        else:
            return -1
        gc.collect(generation)
        return generation

    def stop(self) -> None:
        """Give collection back to Python."""
        self._timer.stop()
        if self._was_enabled:
            gc.enable()
