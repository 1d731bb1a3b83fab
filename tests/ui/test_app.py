"""Starting and ending, as a program of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
_RUN = """
import sys
from ui.app import main
import ui.app, ui.window
{before}
sys.exit(main({paths!r}))
"""
_AT_FIRST_PAINT = """
def after(window, paths, run):
    print("painted", *sorted({"numpy", "pyqtgraph", "pyarrow", "pandas"} & set(sys.modules)), flush=True)
    {then}
ui.app._after_first_paint = after
"""


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return {**kept, "QT_QPA_PLATFORM": "offscreen", **changes}


def start(before: str, paths: list[str], **changes: str) -> subprocess.Popen[str]:
    code = _RUN.format(before=before, paths=paths)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_nothing_heavy_is_loaded_before_the_window_is_seen() -> None:
    run = start(_AT_FIRST_PAINT.replace("{then}", "window.close()"), [])
    out, err = run.communicate(timeout=60)
    assert out == "painted\n"
    assert run.returncode == 0, err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_in_the_terminal_ends_it() -> None:
    run = start(_AT_FIRST_PAINT.replace("{then}", ""), [])
    assert run.stdout is not None
    assert run.stdout.readline() == "painted\n"
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert "Traceback" not in err


def test_a_trace_on_the_command_line_is_opened(sample_traces: Path) -> None:
    then = """
window_class = ui.window.MainWindow
changed = window_class._trace_changed
def told(self):
    changed(self)
    if self.session.trace is not None:
        print(self.windowTitle(), flush=True)
        self.close()
window_class._trace_changed = told
"""
    run = start(then, [str(sample_traces / "decode_server.sqlite")])
    out, err = run.communicate(timeout=120)
    assert out.startswith("decode_server.sqlite (simulated)"), err
    assert run.returncode == 0, err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one screen")
@pytest.mark.parametrize("display", ["", ":987"])
def test_without_a_display_one_line_says_so(display: str) -> None:
    found = {name: value for name, value in environment().items() if name != "QT_QPA_PLATFORM"}
    if display:
        found["DISPLAY"] = display
    code = "import sys; from inspector.cli import main; sys.exit(main(['window']))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=found, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 4
    assert run.stdout == ""
    assert run.stderr.startswith("inflight: no display")
    assert run.stderr.count("\n") == 1


def test_a_run_on_the_command_line_is_started_and_shown(tmp_path: Path) -> None:
    out = tmp_path / "run.inflight"
    words = [sys.executable, "-I", "-m", "inspector", "record", "--headless", "--control", "--out", str(out), "--"]
    code = f"""
import sys
from ui.app import main
import ui.run.child
ended = ui.run.child.Child._end
def told(self, code):
    ended(self, code)
    print(self.state.name, self.code, list(self.lines.last)[0], flush=True)
    self.parent().close()
ui.run.child.Child._end = told
sys.exit(main([], run={[*words, sys.executable, "-c", "print('worked')"]!r}))
"""
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout == "ENDED 0 worked\n"
    assert "Traceback" not in found.stderr
    assert json.loads((out / "recording.json").read_text())["state"] == "complete"
