"""What can be asked of the kernel tap while it records: every kernel of CUDA graphs for a while, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from ui.run.probe_rows import ProbeRows
from ui.theme import GRID

_SECONDS = 2
_TAP = "kernel tap"
_STOPPED = "stopped on demand"
_EVERY = (
    f"A CUDA graph is recorded as one piece of work; for {_SECONDS} seconds record each of its kernels, which costs "
    "the workload some time"
)
_STOP = "Record no CUDA work until it is to go on; the workload and all other probes go on"
_GO_ON = "Record CUDA work again; where another profiler took its records from the tap, take them back"


class TapButtons(QWidget):
    """Two buttons that are there while a process of the run has a kernel tap; `tell` sends a line of control."""

    def __init__(self, tell: Callable[[Mapping[str, Any]], object]) -> None:
        super().__init__()
        self._tell = tell
        self._is_stopped = False
        self.every = QPushButton(f"Every kernel for {_SECONDS} s")
        self.every.setToolTip(_EVERY)
        self.every.clicked.connect(lambda: self._tell({"nodes": _SECONDS}))
        self.toggle = QPushButton()
        self.toggle.clicked.connect(lambda: self._tell({"kernels": "on" if self._is_stopped else "off"}))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(GRID)
        layout.addWidget(self.every)
        layout.addWidget(self.toggle)
        layout.addStretch(1)
        self.show_state(None, False)

    def show_state(self, rows: ProbeRows | None, is_alive: bool) -> None:
        """As the taps say of themselves."""
        taps = [probe for probe in rows.probes if probe.name == _TAP] if rows is not None else []
        self.setVisible(bool(taps) and is_alive)
        self._is_stopped = bool(taps) and all(probe.message == _STOPPED for probe in taps)
        self.every.setEnabled(not self._is_stopped)
        self.toggle.setText("Record kernels" if self._is_stopped else "Stop kernels")
        self.toggle.setToolTip(_GO_ON if self._is_stopped else _STOP)
