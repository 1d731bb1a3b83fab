"""Following a run live: `python tests/benchmarks/bench_follow.py [RATE] [SECONDS] [COMMAND...]`.

A recorder takes RATE kernels a second from a replayer (or what COMMAND tells; `demo`: the built-in engine), the window
follows with all its views. Says how far the picture is behind the clock, how much of a processor the window takes, how
long the GUI thread was stuck at most, how the memory grew, and what was lost. Other work on the machine makes any
thread wait: beside it stands how long a process that only sleeps was kept waiting, and the processor time that the GUI
thread itself took between two ticks. SHOT=FILE saves a picture of the window.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
_TICK_MS = 5
_QUIET_S = 3.0
_SLEEPER = """
import select, sys, time
found, last = [], time.perf_counter()
while not select.select([sys.stdin], [], [], 0.005)[0]:
    now = time.perf_counter()
    found.append((now - last) * 1e3)
    last = now
found.sort()
print(f"p99 {found[len(found) * 99 // 100]:.0f} ms, most {found[-1]:.0f} ms")
"""


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def resident_mb(kind: str = "VmRSS") -> float:
    """Resident memory of this process, MB: all of it, or that of files ("RssFile"), which the system may take back."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) / 1000
    return 0.0


def main() -> None:
    rate = int(float(sys.argv[1])) if len(sys.argv) > 1 else 200_000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    parent = Path(tempfile.mkdtemp())
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["INFLIGHT_CONFIG_DIR"] = str(parent / "config")
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from ui.app import build
    from ui.questions import Asker

    app = QApplication([])
    asker = Asker()
    window = build(app, asker)
    window.resize(1600, 900)
    window.show()
    window.load_views()
    for _ in range(200):
        app.processEvents()
        time.sleep(0.005)
    folder = parent / "run.inflight"
    replay = [sys.executable, str(ROOT / "tests/benchmarks/replay_kernels.py"), str(rate), str(seconds)]
    command = sys.argv[3:] or replay
    if command == ["demo"]:
        words = ["demo", "--headless", "--seconds", str(seconds), "--out", str(folder)]
    else:
        limit = ["--seconds", str(seconds)] if sys.argv[3:] else []
        words = ["record", "--headless", *limit, "--out", str(folder), "--", *command]
    recorder = subprocess.Popen([sys.executable, "-m", "inspector", *words], cwd=ROOT, stdout=subprocess.DEVNULL)
    while not (folder / "recording.json").is_file():
        time.sleep(0.01)
    session = window.session
    session.follow(folder)
    lags: list[float] = []
    drawn: list[float] = []
    gaps: list[float] = []
    worked: list[float] = []
    generations = 0
    last = [time.perf_counter(), time.thread_time()]

    def grown() -> None:
        nonlocal generations
        generations += 1
        trace = session.trace
        if trace is not None:
            lags.append((time.monotonic_ns() - trace.info.origin_ns - trace.settled_ns) / 1e6)

    def tick() -> None:
        now = time.perf_counter()
        gaps.append((now - last[0]) * 1e3)
        work = time.thread_time()
        worked.append((work - last[1]) * 1e3)
        last[:] = now, work
        view = window.views.get("timeline")
        pictures = view.canvas.scene.pictures if view is not None else ()
        trace = session.trace
        if pictures and trace is not None and session.live.is_on:
            newest = max(made.trace.settled_ns for made in pictures)
            drawn.append((time.monotonic_ns() - trace.info.origin_ns - newest) / 1e6)

    session.grown.connect(grown)
    timer = QTimer()
    timer.timeout.connect(tick)
    timer.start(_TICK_MS)
    begin, cpu = time.perf_counter(), time.process_time()
    base = resident_mb()
    sleeper: subprocess.Popen[bytes] | None = None
    at_rest: tuple[float, float] | None = None
    next_said = 10.0
    while time.perf_counter() - begin < seconds:
        app.processEvents()
        time.sleep(0.001)
        now = time.perf_counter() - begin
        if now >= next_said:
            next_said += 10
            tables = session.trace.tables if session.trace is not None else {}
            rows = sum(len(table) for table in tables.values())
            lag = np.median(lags[-50:]) if lags else 0.0
            more, files = resident_mb() - base, resident_mb("RssFile")
            say(f"{now:5.0f} s {rows:12,} rows, {more:6.0f} MB more, {files:.0f} MB in files, lag {lag:.0f} ms")
        if at_rest is None and now > _QUIET_S:
            at_rest = now, time.process_time()
            gaps.clear()
            worked.clear()
            sleeper = subprocess.Popen([sys.executable, "-c", _SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            lags.clear()
            drawn.clear()
    took = time.perf_counter() - begin
    quiet, used = at_rest or (0.0, cpu)
    if shot := os.environ.get("SHOT"):
        window.grab().save(f"{shot}.live.png")
    share = (time.process_time() - used) / (took - quiet)
    say(f"{generations} generations; the window took {share:.0%} of a processor")
    for name, values in (("settled behind the clock", lags), ("drawn behind the clock", drawn)):
        if values:
            low, high = np.percentile(values, [50, 99])
            say(f"{name}: p50 {low:.0f} ms, p99 {high:.0f} ms, most {max(values):.0f} ms")
    say(f"GUI thread stuck: p99 {np.percentile(gaps, 99):.0f} ms, most {max(gaps):.0f} ms")
    say(f"its own work at a time: p99 {np.percentile(worked, 99):.0f} ms, most {max(worked):.0f} ms")
    if sleeper is not None:
        say(f"a sleeper was kept waiting: {sleeper.communicate(b'end')[0].decode()}")
    say(f"memory: {resident_mb() - base:.0f} MB more than at the start, at most {_most_mb():.0f} MB in all")
    while session.live.is_on:
        app.processEvents()
        time.sleep(0.005)
        if recorder.poll() is not None and time.perf_counter() - begin > seconds + 120:
            break
    recorder.wait()
    trace = session.trace
    told = folder.with_suffix(".told")
    if trace is not None:
        lost = trace.quality.count("profiler-loss")
        say(f"ended {session.live.state!r}: {trace.num_work():,} kernels, {lost:,} noted as lost")
    if told.is_file():
        say(f"the replayer {told.read_text()}")
    if shot := os.environ.get("SHOT"):
        window.grab().save(shot)
    timer.stop()
    session.close()
    asker.close(20_000)
    window.close()


def _most_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


if __name__ == "__main__":
    main()
