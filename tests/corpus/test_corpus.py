"""Other people's traces through the command line, held against a count that shares no code with the program."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from inspector.cli import main
from tests.corpus.brute_force import figures

NSYS = (
    "h100x2_fsdp_1s",
    "h100x2_fsdp_mfu_before",
    "a100_saxpy_mpi_2.9",
    "poolformer_3.0",
    "centerformer_baseline",
    "aws_report2",
    "mordred_2021",
    "graphs_2025.5.2",
)
KINETO = (
    "a100_graphs_rank0",
    "sampled_rank0",
    "sampled_rank1",
    "event_sync",
    "cpu_only_rank34",
    "rank_non_gpu",
    "mi250_minitoy",
    "h100_qwen1.5_0.5b",
    "vllm_decode_graph_execution",
    "sglang_qwen3_8b_prefilldecode",
    "resnet50_worker0",
)
FILES = [f"nsys/{name}.sqlite" for name in NSYS] + [f"kineto/{name}.json.gz" for name in KINETO]


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The one JSON object that a command prints."""
    code = main([*arguments, "--format", "json"])
    printed, errors = capsys.readouterr()
    assert (code, errors) == (0, "")
    found: dict[str, Any] = json.loads(printed)
    return found


@pytest.mark.parametrize("name", FILES)
def test_figures_equal_an_independent_count(name: str, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = corpus / name
    before = hashlib.sha256(path.read_bytes()).digest()
    found = output(capsys, "summary", str(path))
    counts, devices = figures(path)
    assert {table: found["records"][table] for table in counts} == counts
    assert {device["device"] for device in found["devices"]} == devices.keys()
    for device in found["devices"]:
        expected = devices[device["device"]]
        assert {key: device[key] for key in expected} == expected
        assert sum(device["idle_by_cause_ns"].values()) == expected["idle_ns"]
        assert all(device["idle_by_cause_ns"].values())
    gaps = output(capsys, "gaps", str(path))
    assert gaps["device_idle_ns"] == {str(device): expected["idle_ns"] for device, expected in devices.items()}
    for device, expected in devices.items():
        mine = [gap for gap in gaps["gaps"] if gap["device"] == device]
        assert len(mine) == expected["gaps"]
        for gap in mine:
            edges = [gap["start_ns"], *(part["end_ns"] for part in gap["slices"])]
            assert [part["start_ns"] for part in gap["slices"]] == edges[:-1]
            assert edges[-1] == gap["end_ns"]
    assert hashlib.sha256(path.read_bytes()).digest() == before


@pytest.mark.parametrize("name", FILES)
def test_content_tells_the_format_not_the_name(
    name: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = tmp_path / "unknown"
    shutil.copyfile(corpus / name, unknown)
    known, renamed = (output(capsys, "summary", str(path)) for path in (corpus / name, unknown))
    known["trace"]["path"] = renamed["trace"]["path"] = ""
    assert known == renamed


@pytest.mark.parametrize("name", FILES)
def test_a_recording_of_a_trace_is_the_trace(
    name: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.inflight"
    assert main(["convert", str(corpus / name), str(out)]) == 0
    capsys.readouterr()
    original, reopened = (output(capsys, "summary", str(path)) for path in (corpus / name, out))
    assert reopened["trace"].pop("kind") == "recording"
    for summary in (original, reopened):
        for key in ("path", "kind"):
            summary["trace"].pop(key, None)
    assert original == reopened
    for command in ("kernels", "iterations"):
        assert output(capsys, command, str(corpus / name)) == output(capsys, command, str(out))


@pytest.mark.parametrize(
    "command", ["summary", "gaps", "kernels", "iterations"], ids=lambda command: f"{command} of no trace"
)
def test_a_file_that_is_no_trace(command: str, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(corpus / "nsys/not_nsys.sqlite")]) == 3
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert errors.count("\n") == 1


def test_two_ranks_are_one_trace(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(corpus / f"kineto/sampled_rank{rank}.json.gz") for rank in (0, 1)]
    found = output(capsys, "summary", *paths)
    single = [output(capsys, "summary", path)["devices"][0] for path in paths]
    assert [device["device"] for device in found["devices"]] == [0, 1]
    for together, alone in zip(found["devices"], single, strict=True):
        assert together["busy_ns"] == alone["busy_ns"]
        assert together["idle_by_cause_ns"].keys() >= {"launch overhead"}
        assert together["work"] == alone["work"]


@pytest.mark.parametrize("form", ["text", "csv"])
@pytest.mark.parametrize("command", ["gaps", "kernels", "iterations"])
def test_other_formats(command: str, form: str, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(corpus / "nsys/h100x2_fsdp_1s.sqlite"), "--format", form]) == 0
    printed, errors = capsys.readouterr()
    assert printed.strip()
    assert errors == ""
