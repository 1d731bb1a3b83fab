"""What the Run view asks of a trace: its probes, and how what it recorded was set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.analysis.configured import Configured, configured
from ui.run.probe_rows import ProbeRows, probe_rows

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


@dataclass(frozen=True)
class RunFacts:
    """Both of one generation."""

    probes: ProbeRows
    configured: Configured


def run_facts(trace: Trace) -> RunFacts:
    """Look them up."""
    return RunFacts(probe_rows(trace), configured(trace))
