"""Threads that work things out step back behind the one that draws."""

from __future__ import annotations

import os
import sys
import threading

# That of a workload which the window launches: lower, and one that holds Python's lock would wait for the workload.
_NICE = 5
_this = threading.local()


def step_back() -> None:
    """This thread, from now on; without Linux, where a thread has a priority of its own, nothing is done."""
    if sys.platform != "linux" or getattr(_this, "stepped_back", False):
        return
    _this.stepped_back = True
    thread = threading.get_native_id()
    try:
        os.setpriority(os.PRIO_PROCESS, thread, max(os.getpriority(os.PRIO_PROCESS, thread), _NICE))
    except OSError:  # it may not be allowed; then all share alike
        return
