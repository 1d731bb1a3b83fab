"""The command line as users and scripts meet it: exit codes, one line for what went wrong, outputs that fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inspector.cli import main


@pytest.fixture
def sample(sample_traces: Path) -> str:
    return str(sample_traces / "two_processes.sqlite")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nosuchcommand"], 2),
        (["no/such/file.sqlite"], 3),
        (["summary", "no/such/file.sqlite"], 3),
        (["summary", "SAMPLE", "--device", "9"], 2),
        (["summary", "SAMPLE", "--from", "5", "--to", "4"], 2),
        (["summary", os.devnull], 3),
        (["convert", "SAMPLE", "no/such/folder/out.inflight"], 3),
    ],
)
def test_what_the_user_can_mend_is_one_line(
    arguments: list[str], code: int, sample: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([sample if word == "SAMPLE" else word for word in arguments]) == code
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert errors.count("\n") == 1


@pytest.mark.parametrize("length", ["nan", "inf", "-1", "x"])
def test_lengths_that_are_none(length: str, sample: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["gaps", sample, f"--min-us={length}"])
    assert stopped.value.code == 2


def test_windows_add_up(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    def idle(*part: str) -> int:
        assert main(["summary", sample, "--device", "0", "--format", "json", *part]) == 0
        (device,) = json.loads(capsys.readouterr().out)["devices"]
        assert device["busy_ns"] + device["idle_ns"] == device["span_ns"]
        assert sum(device["idle_by_cause_ns"].values()) == device["idle_ns"]
        found: int = device["idle_ns"]
        return found

    assert idle() == idle("--to", "7000000") + idle("--from", "7000000")


def test_rollups_and_the_rest_sum_to_all_idle(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    for by in ("cause", "host", "kernel", "iteration", "class"):
        assert main(["gaps", sample, "--by", by, "--min-us", "5", "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        total = sum(row["total_ns"] for row in found["rows"]) + found["shorter"]["total_ns"]
        assert total == sum(found["device_idle_ns"].values())


def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from inspector.cli import main; sys.exit(main(sys.argv[1:]))", *words]
    return subprocess.run(command, text=True, stderr=subprocess.PIPE, check=False, **options)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_full_disk_behind_the_output(form: str, sample: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = run("gaps", sample, "--by", "gap", "--format", form, stdout=full)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1


def test_a_terminal_that_has_few_letters(sample: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run("summary", sample, stdout=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_same_output_twice(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for _ in range(2):
        assert main(["gaps", sample, "--format", "json"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0])["schema"] == "inflight.gaps/1"


def test_numbers_beyond_all_ranges_are_an_unreadable_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "huge.json"
    args = {"correlation": 1, "device": 4_000_000_000_000, "stream": 7}
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1, "args": args}
    path.write_text(json.dumps([event]))
    assert main(["summary", str(path)]) in (0, 3)
    assert "Traceback" not in capsys.readouterr().err
