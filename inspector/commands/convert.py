"""Save a trace as a recording, which opens at once from then on."""

from __future__ import annotations

import argparse
from pathlib import Path

from inspector.commands import common

NAME = "convert"
HELP = "save a trace as a recording (OUT.inflight)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("trace", nargs="+", help=common.TRACE_HELP)
    parser.add_argument("out", help="the recording to write, NAME.inflight")


def run(args: argparse.Namespace) -> int:
    """Read and write."""
    from inspector import units
    from inspector.trace.save import save

    trace = common.read(args.trace)
    save(trace, Path(args.out))
    size = sum(file.stat().st_size for file in Path(args.out).iterdir())
    held = [f"{trace.num_work():,} records of work"] if trace.num_work() or not trace.results else []
    tables = sum(len(results.tables) for results in trace.results)
    held += [f"{tables:,} table{'s' if tables != 1 else ''} of results"] if tables else []
    common.print_text(f"{args.out}: {', '.join(held)}, {units.size(size)}")
    return 0
