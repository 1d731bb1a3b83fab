"""Nsight Systems around a run: a button that begins a collection, and ends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtWidgets import QPushButton

from ui.run.probe_rows import ProbeRows

_PROBE = "Nsight Systems"
_BEGIN = "Have Nsight Systems collect from now on; its report is put beside the recording, and both open together"
_END = "End the collection and write its report"


class NsysButton(QPushButton):
    """There while Nsight Systems runs the workload; `tell` sends a line of control."""

    def __init__(self, tell: Callable[[Mapping[str, Any]], object]) -> None:
        super().__init__()
        self._is_on = False
        self.clicked.connect(lambda: tell({"nsys": "stop" if self._is_on else "start"}))
        self.show_state(None, False)

    def show_state(self, rows: ProbeRows | None, is_alive: bool) -> None:
        """As the recorder says of it."""
        found = next((probe for probe in rows.probes if probe.name == _PROBE), None) if rows is not None else None
        self.setVisible(found is not None and is_alive)
        if found is None:
            return
        self._is_on = found.message.startswith("collecting")
        is_between = found.state == "running" and not self._is_on
        self.setText("Stop collecting" if self._is_on else "Collect with Nsight Systems")
        self.setEnabled(found.state != "failed" and not is_between and found.message != "starting")
        self.setToolTip(found.message if not self.isEnabled() else _END if self._is_on else _BEGIN)
