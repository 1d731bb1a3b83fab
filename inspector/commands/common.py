"""What the commands share: reading the trace with progress, picking devices and times, printing."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from inspector.errors import Usage
from inspector.report.text import plain

if TYPE_CHECKING:
    from inspector.readers.reader import Progress
    from inspector.trace.selection import Window
    from inspector.trace.trace import Trace

TRACE_HELP = (
    "a trace; several files are the ranks of one job; a config.json, an engine's folder or options in YAML join it"
)
_PATIENCE_S = 1.0
_REFRESH_S = 0.1


def add_trace(parser: argparse.ArgumentParser, formats: tuple[str, ...] = ("text", "json")) -> None:
    """The trace to read and the format to print."""
    parser.add_argument("trace", nargs="+", help=TRACE_HELP)
    parser.add_argument("--format", choices=formats, default="text", help="what to print (default: text)")


def add_part(parser: argparse.ArgumentParser) -> None:
    """Which part of the trace to look at."""
    parser.add_argument("--from", dest="start", type=int, metavar="NS", help="from this time on, ns of trace time")
    parser.add_argument("--to", dest="end", type=int, metavar="NS", help="up to this time, ns of trace time")
    parser.add_argument("--device", type=int, metavar="N", help="only the device with this number")


def read(paths: list[str]) -> Trace:
    """The trace of those files; a line of progress on stderr where reading takes long and a person watches."""
    from inspector.readers import open_trace

    bar = _Bar()
    try:
        return open_trace(*paths, report=bar)
    finally:
        bar.clear()


class _Bar:
    def __init__(self) -> None:
        self._began = self._drawn = time.monotonic()
        self._shown = False

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self._began < _PATIENCE_S or now - self._drawn < _REFRESH_S:
            return
        self._drawn, self._shown = now, True
        share = f"{100 * progress.done // progress.total:3d} % " if progress.total else ""
        sys.stderr.write(f"\r\x1b[K{share}{progress.stage}, {progress.rows:,} rows")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")


def window_of(args: argparse.Namespace, trace: Trace) -> Window | None:
    """The window of --from and --to; None for the whole trace."""
    from inspector.trace.selection import Window

    if args.start is None and args.end is None:
        return None
    start = 0 if args.start is None else args.start
    end = trace.end_ns if args.end is None else args.end
    if end < start:
        raise Usage("--to is before --from", f"{end} < {start}", "swap them")
    return Window(start, end)


def devices_of(args: argparse.Namespace, trace: Trace) -> list[int]:
    """Rows of the devices that have work, or of the one asked for."""
    from inspector.trace.work import Work

    numbers = trace["devices"]["number"].tolist()
    if args.device is not None:
        if args.device not in numbers:
            known = ", ".join(str(number) for number in numbers) or "none"
            raise Usage(f"no device {args.device} in this trace", f"it has: {known}", "choose one of those")
        return [numbers.index(args.device)]
    return [row for row, work in enumerate(trace.index(Work).devices) if len(work)]


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    json.dump(value, sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")


class CsvOutput:
    """Standard output for CSV: names as they are, unless they would steer a terminal that shows them."""

    def __init__(self) -> None:
        self._is_shown = sys.stdout.isatty()

    def write(self, text: str) -> int:
        """Write it."""
        return sys.stdout.write(plain(text) if self._is_shown else text)


def print_text(text: str) -> None:
    """Text on stdout, with one newline at its end."""
    sys.stdout.write(plain(text.rstrip("\n")) + "\n")
