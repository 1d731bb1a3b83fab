"""Inputs that broke something once, each kept."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from inspector.cli import main


def summary(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["summary", str(path), "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def changed(sample_traces: Path, folder: Path, *statements: str) -> Path:
    """A copy of a sample with some rows changed."""
    path = folder / "changed.sqlite"
    shutil.copyfile(sample_traces / "planted_causes.sqlite", path)
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
def test_a_file_name_that_is_no_text(sample_traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / os.fsdecode(b"bad\xff.sqlite")
    shutil.copyfile(sample_traces / "planted_causes.sqlite", path)
    assert summary(path, capsys)["records"]["kernels"] > 0


def test_a_user_column_with_the_name_of_the_row_id(
    sample_traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add = "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN rowid TEXT"
    path = changed(sample_traces, tmp_path, add, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = 'x'")
    plain = summary(sample_traces / "planted_causes.sqlite", capsys)
    assert summary(path, capsys)["records"] == plain["records"]


def test_a_wall_clock_out_of_all_bounds_is_not_used(
    sample_traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = changed(sample_traces, tmp_path, f"UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = {2**63 - 1}")
    found = summary(path, capsys)
    assert found["trace"]["start_epoch_ns"] is None
    assert "clock" in [note["code"] for note in found["quality"]["notes"]]
    assert main(["convert", str(path), str(tmp_path / "out.inflight")]) == 0
    capsys.readouterr()
    assert summary(tmp_path / "out.inflight", capsys)["devices"] == found["devices"]


def test_what_wrong_records_claim_need_not_fit(
    sample_traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = -{9 * 10**18}, end = {9 * 10**18} WHERE rowid = 3"
    reasons = [
        device["verdict"]["reasons"] for device in summary(changed(sample_traces, tmp_path, wrong), capsys)["devices"]
    ]
    assert any(f"{18 * 10**18:,} ns" in reason for device in reasons for reason in device)


def test_events_that_begin_with_another_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    event = {"tts": 1, "ph": "X", "name": "a", "dur": 1, "pid": 1, "tid": 1}
    path = tmp_path / "chrome.json"
    path.write_text(json.dumps({"traceEvents": [{**event, "ts": at} for at in range(20_000)]}))
    assert summary(path, capsys)["records"]["ranges"] == 20_000
