"""From one command to figures: the built-in engine runs, is recorded, and the recording agrees with itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inspector.readers import open_trace
from inspector.trace.trace import Trace
from tests.story.agreement import disagreements

pytest.importorskip("torch", reason="the built-in engine needs torch: packaging/test installs it")

# Small pools and budgets, so that a short run holds chunks, pauses, reuse, evictions and pages in host memory.
TIGHT = [
    "--max-num-tokens",
    "96",
    "--blocks",
    "48",
    "--host-blocks",
    "32",
    "--policy",
    "max_utilization",
    "--rate",
    "20",
]
RUNS = {
    "as it comes": [],
    "tight, drafts by the model": [*TIGHT, "--draft", "model", "--draft-len", "4"],
    "tight, drafts by n-gram": [*TIGHT, "--draft", "ngram", "--draft-len", "3"],
    "two stages": ["--stages", "2", "--micro-batches", "4"],
    "static": ["--batching", "static"],
}


def inflight(*words: str) -> subprocess.CompletedProcess[str]:
    """The program, as a user calls it."""
    return subprocess.run([sys.executable, "-m", "inspector", *words], capture_output=True, text=True, check=False)


def said(*words: str) -> dict[str, Any]:
    """The JSON that a command prints."""
    done = inflight(*words, "--format", "json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module", params=RUNS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a few seconds."""
    out = tmp_path_factory.mktemp("demo") / "x.inflight"
    done = inflight("demo", "--headless", "--requests", "16", "--rate", "50", "--out", str(out), *RUNS[request.param])
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return out


@pytest.fixture(scope="module")
def trace(recorded: Path) -> Trace:
    """The recording, opened."""
    return open_trace(recorded)


def test_its_tables_agree(trace: Trace) -> None:
    assert disagreements(trace) == []


def test_there_is_something_in_every_table_that_a_view_reads(trace: Trace) -> None:
    for table in ("iterations", "requests", "steps", "page_events", "pools", "ranges", "kernels", "probes", "counters"):
        assert len(trace[table]), table


def test_nothing_was_lost(trace: Trace) -> None:
    assert not trace["probes"]["lost"].any()
    assert not [note for note in trace.quality.notes if note.code in ("truncated", "recovered", "lost")]


def test_the_commands_work_on_it(recorded: Path, trace: Trace) -> None:
    summary = said("summary", str(recorded))
    assert summary["trace"]["kind"] == "recording"
    assert summary["records"]["iterations"] == len(trace["iterations"])
    for device in summary["devices"]:
        assert sum(device["idle_by_cause_ns"].values()) == device["idle_ns"]
        assert device["busy_ns"] + device["idle_ns"] == device["span_ns"]
    cells = trace["stage_work"]
    told = {device["device"]: device["stage_work_ns"] for device in summary["devices"]}
    waited = sum(device["stage_work_without_processor_ns"] for device in summary["devices"])
    wall = cells["end"] - cells["start"]
    assert {stage: int(wall[cells["stage"] == stage].sum()) for stage in set(cells["stage"].tolist())} == {
        device: ns for device, ns in told.items() if ns
    }
    assert waited == int((wall - cells["cpu"]).sum()) > 0
    text = inflight("summary", str(recorded)).stdout
    assert text.count("of the target's forward passes") == len(set(cells["stage"].tolist())) > 0
    gaps = said("gaps", str(recorded))
    assert {int(key): value for key, value in gaps["device_idle_ns"].items()} == {
        device["device"]: device["idle_ns"] for device in summary["devices"]
    }
    iterations = said("iterations", str(recorded))
    assert len(iterations["iterations"]) == len(trace["iterations"])
