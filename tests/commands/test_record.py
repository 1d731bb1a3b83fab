"""`inflight record` and `inflight demo` as command lines: what they start, what they refuse, what the window gets."""

from __future__ import annotations

import argparse
import importlib.util
import json
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import ui.app
from inspector.cli import main, parser
from inspector.commands.record import default_out
from probes.workloads.engine import options


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], list[str]]]:
    """The windows that were opened, as (paths, run), without a screen."""
    opened: list[tuple[list[str], list[str]]] = []

    def show(paths: Sequence[str] = (), run: Sequence[str] | None = None) -> int:
        opened.append((list(paths), list(run or [])))
        return 0

    monkeypatch.setattr(ui.app, "main", show)
    return opened


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """What a process that is started with those words makes of them."""
    start, program = list(words[:4]), list(words[4:])
    assert start == [sys.executable, "-I", "-m", "inspector"]
    return parser().parse_args(program)


def test_without_headless_the_window_gets_the_run(windows: list[tuple[list[str], list[str]]], tmp_path: Path) -> None:
    out = tmp_path / "a.inflight"
    command = ["python", "serve.py", "--headless", "--out", "theirs", "--", "x"]
    assert main(["record", "--out", str(out), "--seconds", "2.5", "--", *command]) == 0
    ((paths, run),) = windows
    assert paths == []
    args = parsed(run)
    assert (args.command, args.headless, args.control, args.seconds, args.out) == ("record", True, True, 2.5, str(out))
    assert args.words == command
    assert not out.exists()


def test_a_demo_passes_its_options_on(
    windows: list[tuple[list[str], list[str]]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--max-batch-size", "3", "--mix", "faq=1,copy=2", "--no-reuse"]) == 0
    args = parsed(windows[0][1])
    assert (args.command, args.headless, args.control, args.seconds) == ("demo", True, True, None)
    assert Path(args.out).parent == tmp_path
    assert Path(args.out).match("demo-*.inflight")
    args.seconds = 0.0
    made = options.from_args(args)
    assert (made.max_batch_size, dict(made.mix), made.reuse) == (3, {"faq": 1.0, "copy": 2.0}, False)


@pytest.mark.parametrize("missing", ["torch", "safetensors"])
def test_a_demo_without_torch_says_what_to_run(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else find(name))
    assert main(["demo", "--headless"]) == 4
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert missing in errors
    assert "./packaging/run demo" in errors
    assert list(tmp_path.iterdir()) == []


def test_a_demo_with_options_that_cannot_be_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--headless", "--max-batch-size", "0"]) == 2
    assert "--max-batch-size 0" in capsys.readouterr().err


def test_the_options_of_the_engine_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--list-options"]) == 0
    assert {option["name"] for option in json.loads(capsys.readouterr().out)} >= {"max_batch_size", "draft_len"}


def test_names_of_commands_make_plain_file_names() -> None:
    for name, word in (("python3.12", "python3-12"), ("../a b", "a-b"), ("...", "recording")):
        assert default_out(name).startswith(f"{word}-20")


@pytest.mark.parametrize("seconds", ["1", "60"])
def test_a_demo_at_a_port_that_is_taken_is_refused_before_there_is_anything(
    seconds: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["demo", "--headless", "--seconds", seconds, "--port", str(port)]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert f"--port {port}: Address already in use. Choose another one" in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", ["host,nvlm", ",", "all"])
def test_probes_that_are_not_known_are_refused_with_those_that_are(
    names: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "a.inflight"
    with pytest.raises(SystemExit) as ended:
        main(["record", "--headless", "--out", str(out), "--probe", names, "--", "true"])
    assert ended.value.code == 2
    assert "there are host, nvml, kernels, executor" in capsys.readouterr().err
    assert not out.exists()


def test_probes_are_passed_on_to_the_window(windows: list[tuple[list[str], list[str]]], tmp_path: Path) -> None:
    assert main(["record", "--out", str(tmp_path / "a.inflight"), "--probe", "nvml, host", "--", "true"]) == 0
    assert parsed(windows[0][1]).probe == {"host", "nvml"}


def test_without_a_screen_the_way_to_do_without_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    out = tmp_path / "a.inflight"
    assert main(["record", "--out", str(out), "--", "true"]) == 4
    assert "no display. Run under a desktop, or add --headless" in capsys.readouterr().err
    assert not out.exists()
