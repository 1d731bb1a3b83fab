"""Kernel statistics."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from inspector.commands import common

NAME = "kernels"
HELP = "kernel statistics, by name or by category"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    common.add_trace(parser, ("text", "json", "csv"))
    common.add_part(parser)
    parser.add_argument("--by", choices=("name", "category"), default="name", help="what a row is (default: name)")


def run(args: argparse.Namespace) -> int:
    """Print the statistics."""
    from inspector import units
    from inspector.analysis.kernels import kernels
    from inspector.report.text import comma_separated, shortened, table
    from inspector.trace.work import Work

    trace = common.read(args.trace)
    device = common.devices_of(args, trace)[0] if args.device is not None else None
    rows = kernels(trace, args.by, common.window_of(args, trace), device)
    plain = [{key: value for key, value in asdict(row).items() if key != "name_id"} for row in rows]
    graphs = int(trace.index(Work).counted["graphs"].sum())
    hidden = f"{graphs:,} CUDA graph launches were recorded as a whole: the kernels inside are not in this file"
    if args.format == "json":
        common.print_json(
            {"schema": "inflight.kernels/1", "by": args.by, "hidden": hidden if graphs else None, "kernels": plain}
        )
    elif args.format == "csv":
        heads = list(plain[0]) if plain else ["name"]
        common.CsvOutput().write(comma_separated(heads, [list(row.values()) for row in plain]))
    else:
        cells = [
            (
                f"{row.count:,}",
                units.time(row.total_ns),
                f"{100 * row.share:.1f} %",
                units.time(row.median_ns),
                units.time(row.p99_ns),
                units.time(row.launch_delay_ns) if row.launch_delay_ns is not None else "–",
                row.category,
                shortened(row.name, 90) if args.by == "name" else "",
            )
            for row in rows
        ]
        heads = ["count", "total", "share", "median", "p99", "launch delay", "category", "name"]
        common.print_text(table(heads, cells, left=(6, 7)) if cells else "no device work in this trace")
        if graphs:
            common.print_text(hidden)
    return 0
