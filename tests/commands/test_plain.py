"""What a file from elsewhere holds does not steer the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inspector.cli import main
from inspector.commands.common import CsvOutput
from inspector.report.text import plain
from inspector.trace.builder import Builder
from inspector.trace.save import save
from inspector.trace.trace import TraceInfo
from probes.saying import say


def test_controls_become_escapes_and_all_else_stays() -> None:
    assert plain("a\x1b[2Jb\r\n\tc\x9bé✓") == "a\\x1b[2Jb\\x0d\n\tc\\x9bé✓"
    # What turns the direction of writing makes a line read as another.
    assert plain("a\u202eb\u2066c\u2028d") == "a\\u202eb\\u2066c\\u2028d"


def test_the_recorder_says_one_line_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    say("  producer \x1b[2Jx\ninflight: all is well\u2028\x85more")
    assert capsys.readouterr().err == "inflight:   producer \\x1b[2Jx inflight: all is well  more\n"


def test_names_of_kernels_are_printed_harmlessly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = Builder()
    device = builder.device(number=0, name="gpu\x1b[31m")
    process = builder.process(pid=1, name="p\x07")
    stream = builder.stream(process=process, device=device, number=7)
    name = builder.names.add("k\x1b]0;owned\x07")
    builder.add("kernels", start=[0, 20], end=[10, 30], stream=stream, correlation=0, name=name)
    path = tmp_path / "a.inflight"
    save(builder.build(TraceInfo((), "recording")), path)
    for command in ("summary", "kernels", "gaps", "iterations"):
        main([command, str(path)])
    out, errors = capsys.readouterr()
    assert "k\\x1b]0;owned\\x07" in out
    assert "\x1b" not in out + errors
    assert "\x07" not in out + errors


def test_tables_for_other_programs_are_as_they_are_but_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    CsvOutput().write("a\x1b[2J,b\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    CsvOutput().write("a\x1b[2J,b\n")
    assert capsys.readouterr().out == "a\x1b[2J,b\na\\x1b[2J,b\n"


def test_neither_do_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", str(tmp_path / "no\x1bsuch")]) == 3
    assert "\x1b" not in capsys.readouterr().err
