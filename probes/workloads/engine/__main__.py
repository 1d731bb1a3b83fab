"""The workload process: the built-in engine, its load, its server. `python -I -m probes.workloads.engine --help`."""

from __future__ import annotations

import argparse
import ctypes
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from types import FrameType

from inspector.errors import InspectorError, Missing, Usage
from probes.workloads.engine import options as engine_options
from probes.workloads.engine.control import follow
from probes.workloads.engine.options import Options

NICENESS = 5
_SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
_FIGURES_EVERY = 1.0
_NEEDED = ("torch", "safetensors", "numpy")


def main(argv: Sequence[str] | None = None) -> int:
    """Run until the end; returns the exit code: 128 + its number after a signal, 0 after any other end."""
    parser = argparse.ArgumentParser("engine", description="A small inference engine, as a workload to look at.")
    engine_options.add_arguments(parser)
    parser.add_argument("--control", action="store_true", help="take changes as JSON lines on standard input")
    parser.add_argument(
        "--end-with", type=int, metavar="PID", help="end when that process ends, which started this one"
    )
    args = parser.parse_args(argv)
    interrupts = Interrupts()
    if args.end_with is not None and not end_with(args.end_with):
        complain("who started the engine is gone")
        return 0
    try:
        options = engine_options.from_args(args)
        if not (options.rate or args.control or options.port is not None):
            raise Usage("--rate 0", "no request would ever arrive", "use it with --port or --control")
        say("starting the engine")
        os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), NICENESS))
        run(options, args.control, interrupts)
    except InspectorError as error:
        complain(str(error))
        return error.exit_code
    except MemoryError:
        complain(
            str(Missing("there is no memory to go on with", "", "use fewer blocks, or raise the limit (ulimit -v)"))
        )
        return Missing.exit_code
    except Interrupted:
        complain("interrupted")
    return interrupts.exit_code


def run(options: Options, control: bool, interrupts: Interrupts) -> None:
    """Load what is needed, then run. Raises InspectorError; Interrupted when it is to end at once."""
    try:
        from probes.workloads.engine.assembly import assemble
        from probes.workloads.engine.figures import Ticker
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        raise Missing(f"no {error.name}", "the engine computes with it", "install inflight-inspector[demo]") from None
    except ImportError as error:
        # Without memory for it, among other things; numpy has many lines to say about that.
        raise Missing("torch and numpy cannot be loaded", str(error).strip().splitlines()[-1]) from None
    with ExitStack() as stack:
        made = assemble(options, complain, stack)
        interrupts.stop = made.loop.stop
        if control:
            # Unbuffered, by a thread that nobody waits for: a buffer's lock would be in the way at the end.
            lines = io.FileIO(0, closefd=False)
            threading.Thread(target=follow, args=(lines, made.loop.change, complain), daemon=True).start()
        ticker = Ticker(made.loop, say, _FIGURES_EVERY)
        say(f"serving at {made.url}" if made.url else "ready")
        ticker.start()
        try:
            made.loop.run()
        finally:
            interrupts.stop = None
            say(ticker.stop())


def end_with(pid: int) -> bool:
    """Have the system send SIGTERM here when the parent ends, killed or not; whether `pid` still is the parent.

    Where the system cannot (it is no Linux), only the answer.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    return os.getppid() == pid


class Interrupted(BaseException):
    """It is to end at once.

    No KeyboardInterrupt: when one goes through an `exec`, as modules use while they are imported, Python ends itself
    by SIGINT though it was caught.
    """


class Interrupts:
    """SIGINT and SIGTERM. The first calls `stop`, if that is set; without it, or another time, Interrupted."""

    def __init__(self) -> None:
        self.stop: Callable[[], None] | None = None
        self.exit_code = 0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._came)

    def _came(self, number: int, frame: FrameType | None) -> None:
        stop, self.stop = self.stop, None
        self.exit_code = 128 + number
        if stop is None:
            raise Interrupted
        stop()


def say(line: str) -> None:
    """A line on standard output, if anyone still reads it."""
    _write(1, line)


def complain(line: str) -> None:
    """A line on standard error, if anyone still reads it."""
    _write(2, line)


def _write(descriptor: int, line: str) -> None:
    # What it quotes may come from a control line or a client: nothing of that is to steer a terminal.
    shown = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line)
    with suppress(OSError):
        os.write(descriptor, f"{shown}\n".encode())


if __name__ == "__main__":
    sys.exit(main())
