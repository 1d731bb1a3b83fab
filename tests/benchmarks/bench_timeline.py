"""By hand: milliseconds per step of the timeline over 10 million kernels in 16 rows, beside plain numpy in one run.

    .venv/bin/python tests/benchmarks/bench_timeline.py [kernels]

A *frame* is what a pan or zoom step costs on the GUI thread: 1600x900, offscreen, from the newest picture. A *picture*
is what the pool computes for it, three screens wide. *Plain* is a whole row's worth of columns from searchsorted and
prefix sums for the exact screen, without kinds, lanes or long events: the least that any such drawing must do.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from inspector.picture.search import Filter
from inspector.picture.timeline import picture
from inspector.picture.tracks import Tracks
from inspector.picture.viewport import Viewport
from inspector.trace.builder import Builder
from inspector.trace.selection import Window
from inspector.trace.trace import Trace, TraceInfo

ROWS = 16
ZOOMS = {"whole": 1.0, "10 %": 0.1, "3 %": 0.03, "1 %": 0.01, "1e-4": 1e-4, "1e-6": 1e-6}
NAMES = ("nvjet_tst", "flash_fwd_kernel", "ncclDevKernel_AllReduce", "rms_norm", "moe_gemm", "topk", "silu", "rope")


def made(kernels: int) -> Trace:
    """16 streams of one device, durations as of decoding, a longer gap every few hundred kernels."""
    builder = Builder()
    process, device = builder.process(1, "python"), builder.device(0, "NVIDIA H200")
    random = np.random.default_rng(1)
    names = builder.names.add_all(NAMES)
    for row in range(ROWS):
        size = kernels // ROWS
        length = (random.lognormal(1.9, 0.8, size) * 1000).astype(np.int64).clip(1000, 60_000)
        gap = random.integers(200, 1500, size)
        gap[::392] += 400_000
        start = np.cumsum(gap + np.r_[0, length[:-1]])
        stream = builder.stream(process, device, 7 + row)
        name = random.choice(names, size)
        builder.add("kernels", start=start, end=start + length, stream=stream, name=name, correlation=0)
    return builder.build(TraceInfo(("bench",), "bench"))


def timed(step: Callable[[int], object], repeats: int = 15) -> tuple[float, float]:
    """(median, worst) ms of `step(0)`, `step(1)`, ... after two that warm up."""
    found = []
    for at in range(repeats + 2):
        begin = time.perf_counter()
        step(at)
        found.append((time.perf_counter() - begin) * 1000)
    return statistics.median(found[2:]), max(found[2:])


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    kernels = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["INFLIGHT_CONFIG_DIR"] = tempfile.mkdtemp()
    from PySide6.QtWidgets import QApplication

    from ui.questions import Asker
    from ui.session import Session
    from ui.settings import SettingsFile
    from ui.theme import Theme
    from ui.views.timeline import Timeline
    from ui.views.view import Host

    trace = made(kernels)
    streams = tuple(track for track in trace.index(Tracks).tracks if track.kind == "stream")
    whole = Window(0, trace.end_ns)
    begin = time.perf_counter()
    picture(trace, Viewport(whole, 1600).grid(), streams, Filter())
    say(f"{kernels:,} kernels; first picture of {ROWS} rows, indexes and all: {time.perf_counter() - begin:.2f} s")

    app = QApplication([])
    settings, asker = SettingsFile(), Asker()
    theme = Theme(app, settings)
    session = Session(asker, settings)
    view = Timeline(Host(session, asker, theme, settings))
    view.resize(1600, 900)
    view.show()
    begin = time.perf_counter()
    session.set_trace(trace)
    while asker.busy or view.state.value != "answer":
        app.processEvents()
    say(f"window to all pictures of this trace, causes of idle among them: {time.perf_counter() - begin:.2f} s")

    rows = [
        (trace["kernels"]["start"][mine], trace["kernels"]["end"][mine])
        for mine in (np.flatnonzero(trace["kernels"]["stream"] == row) for row in range(ROWS))
    ]
    before = [np.r_[0, np.cumsum(end - start)] for start, end in rows]

    def plain(window: Window) -> None:
        edges = np.linspace(window.start, window.end, 1601)
        for (start, end), sums in zip(rows, before, strict=True):
            at = np.searchsorted(start, edges, "right") - 1
            row = np.maximum(at, 0)
            np.diff(sums[row] + np.clip(edges - start[row], 0, end[row] - start[row]) * (at >= 0))

    say(f"{'zoom':8} {'frame':>16} {'picture':>16} {'plain numpy':>16} {'frame/plain':>12}")
    for name, share in ZOOMS.items():
        length = max(int(whole.length * share), 100)

        def window(at: int, length: int = length) -> Window:
            start = int((whole.length - length) * 0.37) + at * max(length // 100, 1)
            return Window(start, start + length)

        session.look(window(0))
        while asker.busy:
            app.processEvents()

        def frame(at: int, window: Callable[[int], Window] = window) -> None:
            session.look(window(at), remember=False)
            view.canvas.repaint()

        def asked(at: int, window: Callable[[int], Window] = window) -> None:
            picture(trace, Viewport(window(at), 1384).grid(), streams, Filter())

        def bare(at: int, window: Callable[[int], Window] = window) -> None:
            plain(window(at))

        shown, wanted, numpy = timed(frame), timed(asked, 5), timed(bare, 5)
        cells = "".join(f" {median:7.1f} /{worst:6.1f} " for median, worst in (shown, wanted, numpy))
        say(f"{name:8}{cells} {shown[0] / numpy[0]:11.2f}")
    asker.close()


if __name__ == "__main__":
    main()
