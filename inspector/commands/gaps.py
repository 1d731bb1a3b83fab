"""Idle gaps and their causes."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from inspector.commands import common

if TYPE_CHECKING:
    from inspector.analysis.causes import DeviceSlices
    from inspector.trace.names import Names
    from inspector.trace.selection import Window
    from inspector.trace.trace import Trace

NAME = "gaps"
HELP = "idle gaps and their causes"
_LONGEST = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    common.add_trace(parser, ("text", "json", "csv"))
    common.add_part(parser)
    parser.add_argument(
        "--min-us", type=_micros, default=0.0, metavar="X", help="list gaps of at least X µs; shorter ones as one sum"
    )
    parser.add_argument(
        "--by",
        choices=("gap", "cause", "host", "kernel", "iteration", "class"),
        help="one row per gap (default of json and csv), or idle added up (text: by cause); class: the three of HTA",
    )


def _micros(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"{text} is no length")
    return value


def run(args: argparse.Namespace) -> int:
    """Print the gaps."""
    trace = common.read(args.trace)
    window = common.window_of(args, trace)
    devices = common.devices_of(args, trace)
    min_ns = round(args.min_us * 1000)
    by = args.by or ("cause" if args.format == "text" else "gap")
    if by == "gap":
        listed = _Listed(trace, devices, window, min_ns)
        {"json": _gaps_json, "csv": _gaps_csv, "text": _gaps_text}[args.format](listed)
    else:
        _print_rollup(trace, devices, window, min_ns, by, args.format)
    return 0


class _Listed:
    """The gaps to list, device by device, cut to the window; what is shorter is counted."""

    def __init__(self, trace: Trace, devices: list[int], window: Window | None, min_ns: int) -> None:
        self.trace, self.devices, self.window, self.min_ns = trace, devices, window, min_ns
        self.shorter_count = self.shorter_ns = 0

    def idle(self) -> dict[str, int]:
        """Idle ns by device number."""
        from inspector.analysis.busy import busy

        numbers = self.trace["devices"]["number"]
        return {str(numbers[device]): busy(self.trace, device, self.window).idle_ns for device in self.devices}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for device in self.devices:
            yield from self._of_device(device)

    def _of_device(self, device: int) -> Iterator[dict[str, Any]]:
        import numpy as np

        from inspector.analysis.causes import CAUSES
        from inspector.analysis.gaps import Gaps
        from inspector.analysis.iterations import Iterations
        from inspector.analysis.rollup import clipped, iterations_of_gaps, next_names, previous_names

        trace, names = self.trace, self.trace.names
        gaps = trace.index(Gaps).devices[device]
        slices, start, end = clipped(trace, device, self.window)
        low, high = (self.window.start, self.window.end) if self.window else (0, np.iinfo(np.int64).max)
        from_, to = np.maximum(gaps.start, low), np.minimum(gaps.end, high)
        first = np.searchsorted(slices.gap, np.arange(len(gaps) + 1))
        before, after = previous_names(trace, device), next_names(trace, device)
        iterations, numbers = iterations_of_gaps(trace, device), trace.index(Iterations).number
        tids, number = trace["threads"]["tid"], int(trace["devices"]["number"][device])
        for gap in np.flatnonzero(to > from_).tolist():
            if to[gap] - from_[gap] < self.min_ns:
                self.shorter_count += 1
                self.shorter_ns += int(to[gap] - from_[gap])
                continue
            parts = [at for at in range(first[gap], first[gap + 1]) if end[at] > start[at]]
            yield {
                "device": number,
                "start_ns": int(from_[gap]),
                "end_ns": int(to[gap]),
                "slices": [
                    {
                        "cause": CAUSES[slices.cause[at]],
                        "start_ns": int(start[at]),
                        "end_ns": int(end[at]),
                        "host": _host(names, slices, at),
                        "thread": int(tids[slices.thread[at]]) if slices.thread[at] >= 0 else None,
                        "return_latency": bool(slices.return_latency[at]),
                    }
                    for at in parts
                ],
                "previous": names[int(before[gap])],
                "next": names[int(after[gap])],
                "iteration": int(numbers[iterations[gap]]) if iterations[gap] >= 0 else None,
            }


def _host(names: Names, slices: DeviceSlices, at: int) -> str:
    """The range or call of a slice; empty where the cause is not the host's."""
    from inspector.analysis.causes import LAUNCH_OVERHEAD
    from inspector.analysis.hosts import UNMARKED

    if slices.host[at] >= 0:
        return names[int(slices.host[at])]
    return UNMARKED if slices.cause[at] < LAUNCH_OVERHEAD else ""


def _gaps_json(listed: _Listed) -> None:
    # Written piece by piece: a trace can have millions of gaps.
    write = sys.stdout.write
    write('{"schema":"inflight.gaps/1","device_idle_ns":' + json.dumps(listed.idle()) + ',"gaps":[')
    for count, gap in enumerate(listed):
        write(("," if count else "") + "\n" + json.dumps(gap, separators=(",", ":")))
    write(f'],"shorter":{{"count":{listed.shorter_count},"total_ns":{listed.shorter_ns}}}}}\n')


def _gaps_csv(listed: _Listed) -> None:
    import csv

    heads = ["device", "gap_start_ns", "gap_end_ns", "start_ns", "end_ns", "cause", "host", "thread"]
    writer = csv.writer(common.CsvOutput(), lineterminator="\n")
    writer.writerow([*heads, "previous", "next", "iteration"])
    for gap in listed:
        for part in gap["slices"]:
            writer.writerow(
                [gap["device"], gap["start_ns"], gap["end_ns"]]
                + [part[key] for key in ("start_ns", "end_ns", "cause", "host", "thread")]
                + [gap[key] for key in ("previous", "next", "iteration")]
            )
    if listed.shorter_count:
        sys.stderr.write(f"left out: {listed.shorter_count:,} shorter gaps of {listed.shorter_ns:,} ns together\n")


def _gaps_text(listed: _Listed) -> None:
    from inspector import units
    from inspector.report.text import shortened, table

    every = list(listed)
    longest = sorted(every, key=lambda gap: gap["start_ns"] - gap["end_ns"])[:_LONGEST]
    rows = []
    for gap in longest:
        main = max(gap["slices"], key=lambda part: part["end_ns"] - part["start_ns"])
        rows.append(
            (
                str(gap["device"]),
                units.exact(gap["start_ns"]),
                units.time(gap["end_ns"] - gap["start_ns"]),
                main["cause"],
                shortened(main["host"], 40),
                shortened(gap["next"], 50),
            )
        )
    common.print_text(table(("GPU", "start ns", "length", "main cause", "host", "next"), rows, left=(3, 4, 5)))
    left = len(every) - len(longest)
    if left:
        length = sum(gap["end_ns"] - gap["start_ns"] for gap in every) - sum(
            g["end_ns"] - g["start_ns"] for g in longest
        )
        common.print_text(f"and {left:,} more, {units.time(length)} together (--format json or csv lists all)")
    if listed.shorter_count:
        common.print_text(f"shorter: {listed.shorter_count:,} gaps, {units.time(listed.shorter_ns)} together")


def _print_rollup(trace: Trace, devices: list[int], window: Window | None, min_ns: int, by: Any, form: str) -> None:
    from inspector import units
    from inspector.analysis.busy import busy
    from inspector.analysis.rollup import rollup
    from inspector.report.text import comma_separated, shortened, table

    numbers = trace["devices"]["number"]
    found = [(int(numbers[device]), device, *rollup(trace, device, by, window, min_ns)) for device in devices]
    heads = ("device", "label", "total_ns", "gaps", "longest_ns")
    cells = [
        (number, row.label, row.total_ns, row.gaps, row.longest_ns)
        for number, _, rows, rest in found
        for row in [*rows, *([rest] if rest.gaps else [])]
    ]
    if form == "csv":
        common.CsvOutput().write(comma_separated(heads, cells))
        return
    idle = {str(number): busy(trace, device, window).idle_ns for number, device, _, _ in found}
    if form == "json":
        rows = [
            dict(zip(heads, (number, row.label, row.total_ns, row.gaps, row.longest_ns), strict=True))
            for number, _, part, _ in found
            for row in part
        ]
        shorter = {
            "count": sum(rest.gaps for *_, rest in found),
            "total_ns": sum(rest.total_ns for *_, rest in found),
        }
        common.print_json(
            {"schema": "inflight.gaps/1", "device_idle_ns": idle, "by": by, "rows": rows, "shorter": shorter}
        )
        return
    text = [
        (
            str(number),
            shortened(str(label), 70),
            units.time(total),
            units.share(total, idle[str(number)]),
            f"{gaps:,}",
            units.time(longest),
        )
        for number, label, total, gaps, longest in cells
    ]
    text += [(number, "all idle", units.time(total), "", "", "") for number, total in idle.items()]
    common.print_text(table(("GPU", by, "idle", "share", "gaps", "longest"), text, left=(1,)))
