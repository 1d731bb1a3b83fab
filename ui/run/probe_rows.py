"""What the probes say of themselves in a trace: the newest row of each, and what is lost in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inspector import units
from inspector.trace.schema import PROBE_STATES
from ui.export import Cell
from ui.widgets.graphics import Graphic
from ui.widgets.table import Column

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

COLUMNS = (
    Column("probe", "Probe", 17, "what records", is_name=True),
    Column("state", "State", 7),
    Column("records", "Records", 7, "rows given so far", is_number=True),
    Column("lost", "Lost", 5, "rows that had no room, or that could not be read", is_number=True),
    Column("cost", "Cost", 5, "processor time that it took, as a share of the time passed", "ns", is_number=True),
    Column("process", "Process", 12, "the process that it records in"),
    Column("message", "Says", 10),
)


@dataclass(frozen=True)
class Probe:
    """The newest word of a probe. `cost_ns` is -1 where unknown; `share` of the time that it has been at work."""

    name: str
    process: str
    state: str
    records: int
    lost: int
    cost_ns: int
    share: float
    message: str


@dataclass(frozen=True)
class ProbeRows:
    """Rows of the table; with `records` of the whole trace, `lost` as probes and notes count it, and why."""

    probes: tuple[Probe, ...]
    records: int
    lost: int
    losses: tuple[str, ...]

    @property
    def columns(self) -> Sequence[Column]:
        """As above."""
        return COLUMNS

    def __len__(self) -> int:
        return len(self.probes)

    def text(self, row: int, column: int) -> str:
        """What stands in the cell."""
        probe = self.probes[row]
        cost = "" if probe.cost_ns < 0 else f"{100 * probe.share:.2g} %"
        return (
            probe.name,
            probe.state,
            units.count(probe.records),
            f"{probe.lost:,}",
            cost,
            probe.process,
            probe.message,
        )[column]

    def exact(self, row: int, column: int) -> Cell:
        """The value to copy."""
        probe = self.probes[row]
        cost = None if probe.cost_ns < 0 else probe.cost_ns
        return (probe.name, probe.state, probe.records, probe.lost, cost, probe.process, probe.message)[column]

    def graphic(self, row: int, column: int) -> Graphic | None:
        """None: all of it is text."""
        return None


def probe_rows(trace: Trace) -> ProbeRows:
    """The newest row of each probe of each process, in the order in which they appeared. Trace time 0 is the start."""
    table = trace["probes"]
    newest: dict[tuple[int, int], int] = {}
    keys = zip(table["process"].tolist(), table["name"].tolist(), strict=True)
    for row, key in enumerate(keys):
        newest[key] = row
    probes = []
    for key, row in newest.items():
        process, name = key
        cost = int(table["cost"][row])
        passed = int(table["time"][row])
        message = int(table["message"][row])
        probes.append(
            Probe(
                trace.names[name] if name >= 0 else "probe",
                trace.process_name(process) if process >= 0 else "recorder",
                PROBE_STATES[int(table["state"][row])],
                int(table["records"][row]),
                int(table["lost"][row]),
                cost,
                cost / passed if cost >= 0 and passed > 0 else 0.0,
                trace.names[message] if message >= 0 else "",
            )
        )
    notes = [note for note in trace.quality.notes if note.severity == "loss"]
    rows = sum(len(each) for each in trace.tables.values() if each.schema.sorted_by)
    told = int(np.sum([probe.lost for probe in probes], dtype=np.int64))
    noted = sum(note.count for note in notes if note.code in ("profiler-loss", "invalid"))
    # A workload tells of what it dropped twice: in its probe's row, and in a note of the recorder.
    return ProbeRows(tuple(probes), rows, max(told, noted), tuple(f"{note.count:,} {note.text}" for note in notes))
