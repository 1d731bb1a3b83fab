"""The per-iteration table."""

from __future__ import annotations

import argparse
from typing import Any

from inspector.commands import common

NAME = "iterations"
HELP = "per-iteration table: requests, work, busy, idle by cause"
_HEADS = (
    "iteration",
    "process",
    "kind",
    "context",
    "generation",
    "start_ns",
    "end_ns",
    "host_ns",
    "work",
    "graph_launches",
    "busy_ns",
    "idle_ns",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    common.add_trace(parser, ("text", "json", "csv"))


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    from inspector import units
    from inspector.analysis.causes import CAUSES
    from inspector.analysis.iterations import Iterations, iterations
    from inspector.report.text import comma_separated, table

    trace = common.read(args.trace)
    found, figures = trace.index(Iterations), iterations(trace)
    pids, numbers = trace["processes"]["pid"], trace["devices"]["number"]
    rows: list[dict[str, Any]] = []
    for row in range(len(found)):
        process = int(found.process[row])
        values = (
            int(found.number[row]),
            int(pids[process]) if process >= 0 else None,
            found.kind(row),
            int(found.context[row]) if found.context[row] >= 0 else None,
            int(found.generation[row]) if found.generation[row] >= 0 else None,
            int(found.start[row]),
            int(found.end[row]),
            int(found.host_ns[row]),
            int(figures.work[row]),
            int(figures.graph_launches[row]),
            int(figures.busy_ns[row]),
            int(figures.idle_ns[row]),
        )
        causes = figures.idle_by_cause_ns[row]
        idle = {CAUSES[cause]: int(causes[cause]) for cause in causes.nonzero()[0].tolist()}
        rows.append({**dict(zip(_HEADS, values, strict=True)), "idle_by_cause_ns": idle})
    outside = {str(numbers[device]): int(ns) for device, ns in enumerate(figures.outside_ns.tolist())}
    if args.format == "json":
        common.print_json(
            {
                "schema": "inflight.iterations/1",
                "source": found.source,
                "confidence": found.confidence,
                "iterations": rows,
                "idle_outside_ns": outside,
                "idle_is": "of the gaps that its work ended, whole and over all devices: can exceed its length",
            }
        )
    elif args.format == "csv":
        heads = [*_HEADS, *(f"idle {cause} ns" for cause in CAUSES)]
        cells = [
            [row[head] for head in _HEADS] + [row["idle_by_cause_ns"].get(cause, 0) for cause in CAUSES] for row in rows
        ]
        common.CsvOutput().write(comma_separated(heads, cells))
    elif not rows:
        common.print_text(
            "no iterations: the trace has no engine records, executor ranges or profiler steps, and its kernels repeat"
            f" with a confidence of {found.confidence:.2f} only; record with NVTX ranges (nsys -t cuda,nvtx)"
        )
    else:
        text = [
            (
                str(row["iteration"]),
                "" if row["process"] is None else str(row["process"]),
                row["kind"] or "–",
                "–" if row["context"] is None else str(row["context"]),
                "–" if row["generation"] is None else str(row["generation"]),
                units.time(row["end_ns"] - row["start_ns"]),
                units.time(row["busy_ns"]),
                units.time(row["idle_ns"]),
                max(row["idle_by_cause_ns"], key=row["idle_by_cause_ns"].__getitem__, default=""),
                f"{row['work']:,}",
                f"{row['graph_launches']:,}",
            )
            for row in rows
        ]
        titles = (
            "iteration",
            "process",
            "kind",
            "context",
            "generation",
            "length",
            "busy",
            "idle",
            "main cause",
            "work",
            "graphs",
        )
        common.print_text(
            f"from {found.source}, confidence {found.confidence:.2f}; work counts for the iteration that launched it,"
            " idle time for the one whose work ended it.\nSo idle can be longer than the iteration: a gap that began"
            " before it counts whole, and devices are added up"
        )
        common.print_text(table(titles, text, left=(2, 8)))
    return 0
