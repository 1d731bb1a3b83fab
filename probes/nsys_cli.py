"""Nsight Systems around a workload: `nsys launch`, then `nsys start` and `nsys stop` for what is to be collected.

Written from its documentation and tried with a program that behaves as that says; it has never met the real one. What
is taken on trust: `launch` ends with the workload's exit code and passes signals on; a collection that still runs when
the workload ends is closed by nsys itself, so that `stop` may find none; `start` fails until the session is up.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from inspector import units
from inspector.errors import Missing, Usage

SUFFIX = ".nsys-rep"
_TRACE = "cuda,nvtx,osrt"
_FORKS = "--trace-fork-before-exec"
_VERSION = re.compile(r"(\d{4})\.(\d+)(?:\.\d+)*")
# The first whose reports are called so.
_OLDEST = (2021, 5)
_LITTLE_BYTES = 64 << 20
_QUICK_S = 30.0
_RETRY_S = 0.5
# How long a session may take to come up; a command to end, which writes the report; a report to come by itself.
_UP_S = 60.0
_PATIENCE_S = 600.0
_LATE_S = 30.0
_SHUTDOWN_S = 20.0
_MOST_SAID = 1 << 20
_State = Literal["idle", "starting", "collecting", "stopping", "closing"]


@dataclass(frozen=True)
class Range:
    """What is collected: `seconds` (None: all) from `begin` seconds after the start, or the iterations (first, last).

    `by_hand`: nothing until it is asked for. An iteration is seen when it has ended, and nsys takes its time to start,
    so a range of iterations begins later than it says; it is as long as it says.
    """

    begin: float = 0.0
    seconds: float | None = None
    iterations: tuple[int, int] | None = None
    by_hand: bool = False

    def __str__(self) -> str:
        if self.by_hand:
            return "somebody who asks for it"
        if self.iterations is not None:
            return "iteration {} to {}".format(*self.iterations)
        return f"{self.begin:g} s after the start"

    def wants(self, now: float, iteration: int, since: tuple[float, int] | None) -> bool:
        """Whether to collect `now` (s), when `iteration` is the last that ended; `since` when it does already."""
        if self.by_hand:
            return False
        if self.iterations is not None:
            first, last = self.iterations
            end = last if since is None else max(last, since[1] + last - first + 1)
            return iteration >= first - 1 and (iteration < end or since is None)
        if since is None:
            return now >= self.begin
        return self.seconds is None or now < since[0] + self.seconds


def find() -> str:
    """The program. Raises Missing."""
    program = shutil.which("nsys")
    if program is None:
        raise Missing(
            "cannot record with Nsight Systems",
            "nsys is not on the PATH",
            "install nsight-systems-cli or put nsys' folder on PATH; without --nsys the kernel tap records kernels",
        )
    return program


def check(program: str, environment: Mapping[str, str]) -> None:
    """Whether it can do what is asked of it. Raises Missing when it does not run, or is too old."""
    code, said = _said(program, ["--version"], environment)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    found = _VERSION.search(said)
    if code or found is None:
        why = f"{program} --version ended with {code}: {lines[-1]}" if lines else f"{program} --version says nothing"
        raise Missing("cannot record with Nsight Systems", why, "install nsight-systems-cli anew, or leave --nsys out")
    if (int(found[1]), int(found[2])) < _OLDEST:
        raise Missing(
            f"nsys {found[0]} is too old to record with",
            "its reports are of another kind",
            "install Nsight Systems {}.{} or later".format(*_OLDEST),
        )


def _said(program: str, words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit code of a quick command and what it said; 127 where it did not run or did not end."""
    try:
        done = subprocess.run(
            [program, *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_QUICK_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 127, f"it has not ended in {_QUICK_S:.0f} s"
    except OSError as error:
        return 127, error.strerror or str(error)
    return done.returncode, done.stdout[:_MOST_SAID].decode(errors="replace")


class Nsys:
    """One session of nsys for the workload of the recording at `path`; its reports lie beside it.

    Raises Missing when there is no nsys that can, Usage when a report stands there already.
    """

    def __init__(self, path: Path, wanted: Range, environment: Mapping[str, str]) -> None:
        self.reports: list[Path] = []
        """What was written."""
        self.failed = ""
        """What went wrong, in a line; nothing is tried any more then."""
        self.told: dict[str, str] = {"state": f"waits for {wanted}"}
        """For the header of the recording."""
        self._program = find()
        self._session = f"inflight-{os.getpid()}"
        self._stem = path.with_suffix("")
        self._range = wanted
        self._environment = dict(environment)
        self._asked: bool | None = None
        self._was_asked = False
        self._last_failure = ""
        self._ending = self._over = False
        self._state: _State = "idle"
        self._call: _Call | None = None
        # Seconds: when the first try to start was made, when the next one is due, until when a report may come.
        self._tried: float | None = None
        self._due = self._until = 0.0
        self._since = (0.0, -1)
        if self._next().exists():
            raise Usage(f"{self._next()} is there already", "", "choose another name with --out")
        check(self._program, self._environment)

    def command(self, words: Sequence[str]) -> list[str]:
        """The workload's command line inside the session."""
        options = [f"--session-new={self._session}", f"--trace={_TRACE}"]
        code, known = _said(self._program, ["launch", "--help"], self._environment)
        # Not every release has it; where none can be asked it is taken to be a new one.
        if code or _FORKS in known:
            options.append(f"{_FORKS}=true")
        return [self._program, "launch", *options, *words]

    @property
    def state(self) -> _State:
        """What it is doing."""
        return self._state

    @property
    def is_over(self) -> bool:
        """Whether its range has been collected, so that only a wish begins another."""
        return self._over and self._state == "idle"

    @property
    def words(self) -> str:
        """Its state in a line."""
        if self.failed:
            return self.failed
        if self._state == "collecting":
            return f"collecting since {self._since[0]:.1f} s"
        if self._state in ("stopping", "closing"):
            return "writing its report"
        if self._state == "starting":
            return "starting"
        if self.reports:
            return f"wrote {self.reports[-1].name}"
        return f"waits for {self._range}"

    @property
    def why_nothing(self) -> str:
        """Why there is no report, where nothing failed; '' where nobody asked for one."""
        if self._range.by_hand and not self._was_asked:
            return ""
        before = "it began to collect" if self._range.by_hand else self._range
        return self._last_failure or f"the workload ended before {before}"

    @property
    def is_busy(self) -> bool:
        """Whether a collection is on, or being started or closed."""
        return self._state != "idle"

    def ask(self, collect: bool) -> None:
        """Begin or end a collection by hand, from now on."""
        self._asked, self._over = collect, False
        self._was_asked = True

    def end(self) -> None:
        """Close what is being collected; nothing is begun any more."""
        self._ending = True

    def tick(self, now: float, iteration: int) -> None:
        """Go on: `now` in seconds since the start, `iteration` the last that has ended, -1 for none yet."""
        if self._call is not None:
            code = self._call.code()
            if code is None:
                if self._state == "starting" and self._ending:
                    # What has not begun by the end of the run never will: nothing waits for it.
                    self._last_failure = f"nsys {self._call.word} had not ended when the run did"
                    self._call.close()
                    self._call, self._state = None, "idle"
                elif now - self._call.since > _PATIENCE_S:
                    self._give_up(f"nsys {self._call.word} has not ended in {_PATIENCE_S:.0f} s")
                return
            said = f"nsys {self._call.word} failed: {self._call.last_line()}" if code else ""
            self._call.close()
            self._call = None
            if self._state == "starting":
                self._after_start(said, now, iteration)
            else:
                self._after_stop(said, now, iteration)
        if self._state == "closing":
            self._look_for_report(now)
        elif self._state == "collecting" and (self._ending or not self._wants(now, iteration)):
            self._state = "stopping"
            self._run("stop", now)
        elif self._state == "idle" and self._may_start(now) and self._wants(now, iteration):
            self._state = "starting"
            self._tried = now if self._tried is None else self._tried
            self._run("start", now, f"--output={self._pattern()}", "--sample=none")

    def close(self) -> None:
        """End the session. Raises nothing: what it leaves is nsys' own."""
        if self._call is not None:
            self._call.close()
            self._call = None
        call = _Call(self._program, "shutdown", self._session, (), self._environment, 0.0)
        call.wait(_SHUTDOWN_S)
        call.close()

    def _may_start(self, now: float) -> bool:
        return not (self._ending or self._over or self.failed) and now >= self._due

    def _wants(self, now: float, iteration: int) -> bool:
        if self._asked is not None:
            return self._asked
        return self._range.wants(now, iteration, self._since if self._state == "collecting" else None)

    def _next(self) -> Path:
        number = len(self.reports) + 1
        return self._stem.with_name(self._stem.name + (f"-{number}" if number > 1 else "") + SUFFIX)

    def _pattern(self) -> str:
        # It reads %p and the like in names, and adds its own suffix.
        return str(self._next())[: -len(SUFFIX)].replace("%", "%%")

    def _run(self, word: str, now: float, *options: str) -> None:
        self._call = _Call(self._program, word, self._session, options, self._environment, now)

    def _after_start(self, failed: str, now: float, iteration: int) -> None:
        if not failed:
            self._state, self._since, self._tried, self._due = "collecting", (now, iteration), None, 0.0
            self.told = {"state": "collecting", "since": f"{now:.1f} s"}
        elif self._tried is not None and now - self._tried >= _UP_S:
            self._give_up(failed)
        else:
            self._last_failure = failed
            self._state, self._due = "idle", now + _RETRY_S

    def _after_stop(self, failed: str, now: float, iteration: int) -> None:
        begun, before = self._since
        self.told = {"state": "collected", "range": f"{begun:.1f} s to {now:.1f} s"}
        if iteration > before:
            self.told["iterations"] = f"{before + 1} to {iteration}"
        if failed:
            self.told["note"] = failed
        # Where the workload has ended by itself, nsys closes the collection and may still be writing.
        self._state, self._until = "closing", now + (_LATE_S if failed else 0.0)

    def _look_for_report(self, now: float) -> None:
        report = self._next()
        if report.exists():
            self.told = {**self.told, "report": report.name}
            self.reports.append(report)
            # One range, one report; by hand, as many as are asked for, also while one is being written.
            self._state, self._over = "idle", not self._asked
            self._asked = self._asked or None
        elif now >= self._until:
            self._give_up(self.told.get("note", f"nsys stop wrote no {report}") + _lack_of_room(report))

    def _give_up(self, why: str) -> None:
        self.failed, self._state = why, "idle"
        self.told = {"absent": why}
        if self._call is not None:
            self._call.close()
            self._call = None


def _lack_of_room(report: Path) -> str:
    """That there is no room for it, which nsys may not have said."""
    with suppress(OSError):
        free = shutil.disk_usage(report.parent).free
        if free < _LITTLE_BYTES:
            return f" ({units.size(free)} are free on its disk)"
    return ""


class _Call:
    """One command of nsys that runs beside us; `since` in seconds."""

    def __init__(
        self,
        program: str,
        word: str,
        session: str,
        options: Sequence[str],
        environment: Mapping[str, str],
        since: float,
    ) -> None:
        self.word, self.since = word, since
        self._said = os.memfd_create("nsys")
        self._why = ""
        self._child: subprocess.Popen[bytes] | None = None
        try:
            self._child = subprocess.Popen(
                [program, word, f"--session={session}", *options],
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            self._why = error.strerror or str(error)

    def code(self) -> int | None:
        """Its exit code; None while it runs, 127 where it could not be run."""
        return 127 if self._child is None else self._child.poll()

    def last_line(self) -> str:
        """The last that it said."""
        if self._why:
            return self._why
        said = os.pread(self._said, _MOST_SAID, 0).decode(errors="replace")
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        return lines[-1] if lines else f"it ended with {self.code()} and said nothing"

    def wait(self, seconds: float) -> None:
        """Wait for it to end."""
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(seconds)

    def close(self) -> None:
        """Have it ended, and let go of it."""
        if self._child is not None:
            if self._child.poll() is None:
                # Its group is its own, with all that it has started.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        os.close(self._said)
