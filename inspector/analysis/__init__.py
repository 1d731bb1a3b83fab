"""Analyses: pure functions of (trace, window, options) whose figures have one definition each."""

from __future__ import annotations

ANALYSES: dict[str, str] = {
    "busy": "inspector.analysis.busy:busy",
    "causes": "inspector.analysis.rollup:rollup",
    "completeness": "inspector.analysis.completeness:verdict",
    "iterations": "inspector.analysis.iterations:iterations",
    "kernels": "inspector.analysis.kernels:kernels",
    "launch": "inspector.analysis.launch:launches",
    "recoverable": "inspector.analysis.recoverable:recoverable",
}
"""Name of each analysis and where it stands, imported at first use."""
