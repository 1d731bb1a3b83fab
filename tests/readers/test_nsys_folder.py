"""Parquet and Arrow folders: types that only they have, and files that are damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inspector.errors import Cancelled, Unreadable
from inspector.readers import nsys_arrow, open_trace
from inspector.readers.reader import Progress, silent
from inspector.trace.links import Links
from tests.readers.nsys_export import CALL, KERNEL, STRINGS, to_folder, write

KINDS = ("parquet", "arrow", "stream")


def content() -> dict[str, list[dict[str, Any]]]:
    return {
        "StringIds": [dict(row) for row in STRINGS],
        "CUPTI_ACTIVITY_KIND_KERNEL": [{**KERNEL, "correlationId": i, "start": 100 + i} for i in range(1, 9)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [{**CALL, "correlationId": i} for i in range(1, 9)],
    }


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return to_folder(write(tmp_path / "export.sqlite", content()), tmp_path / "export", request.param)


def test_types_of_columnar_files(tmp_path: Path) -> None:
    folder = tmp_path / "any name"
    folder.mkdir()
    high = 200 << 56 | 10 << 24
    tables = {
        "StringIds": pa.table(
            {"id": pa.array([1, 3], pa.uint32()), "value": pa.array(["gemm", "launch"]).dictionary_encode()}
        ),
        "CUPTI_ACTIVITY_KIND_KERNEL": pa.table(
            {
                "start": pa.array([100], pa.uint64()),
                "end": pa.array([150], pa.int32()),
                "deviceId": pa.array([0], pa.uint8()),
                "contextId": pa.array([1], pa.int16()),
                "streamId": pa.array([7], pa.uint32()).dictionary_encode(),
                "correlationId": pa.array([4_000_000_000], pa.uint32()),
                "globalPid": pa.array([high], pa.uint64()),
                "demangledName": pa.array([1], pa.uint32()),
                "graphNodeId": pa.array([None], pa.null()),
            }
        ),
        "CUPTI_ACTIVITY_KIND_RUNTIME": pa.table(
            {
                "start": pa.array([10], pa.int64()),
                "end": pa.array([20], pa.int64()),
                "globalTid": pa.array([high | 11], pa.uint64()),
                "correlationId": pa.array([4_000_000_000], pa.uint32()),
                "nameId": pa.array([3], pa.uint32()),
            }
        ),
        "NVTX_EVENTS": pa.table(
            {
                "start": pa.array([1, 30], pa.int64()),
                "end": pa.array([None, 40], pa.int64()),
                "eventType": pa.array([75, 59], pa.uint8()),
                "text": pa.array([b"NCCL", b"all\xff"], pa.binary())
                .view(pa.string())
                .cast(pa.large_string(), safe=False),
                "globalTid": pa.array([high | 11] * 2, pa.uint64()),
                "domainId": pa.array([1, 1], pa.uint64()),
                "binaryData": pa.array([None, b"\xff\xfe"], pa.binary()),
            }
        ),
    }
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "notes.txt").write_text("mine")
    trace = open_trace(folder)
    assert trace.info.kind == "nsys-parquet"
    assert trace["processes"]["pid"].tolist() == [10]
    assert trace["threads"]["tid"].tolist() == [11]
    assert trace.index(Links).launch["kernels"].tolist() == [0]
    assert [trace.names[n] for n in trace["ranges"]["name"].tolist()] == ["all\ufffd"]
    assert [trace.names[n] for n in trace["ranges"]["domain"].tolist()] == ["NCCL"]
    assert trace.quality.count("encoding") == 1
    assert "graph_node" not in trace["kernels"]


def test_a_damaged_file_is_named(folder: Path) -> None:
    path = next(folder.glob("CUPTI_ACTIVITY_KIND_KERNEL.*"))
    data = path.read_bytes()
    for damaged in (data[: len(data) // 2], b"", b"PAR1" + bytes(50)):
        path.write_bytes(damaged)
        with pytest.raises(Unreadable, match="CUPTI_ACTIVITY_KIND_KERNEL") as caught:
            open_trace(folder)
        assert "\n" not in str(caught.value)


def test_a_folder_of_other_files_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "kernels.arrow").write_bytes(b"ARROW1")
    assert nsys_arrow.sniff(b"", tmp_path) == 0
    assert nsys_arrow.sniff(b"", tmp_path / "missing") == 0
    with pytest.raises(Unreadable):
        open_trace(tmp_path)


def test_cancel(folder: Path) -> None:
    def report(progress: Progress) -> None:
        if progress.rows:
            raise Cancelled

    with pytest.raises(Cancelled):
        nsys_arrow.read(folder, report)
    assert nsys_arrow.read(folder, silent).records("kernels") == 8


def test_reading_does_not_load_pandas(folder: Path) -> None:
    code = (
        "import sys; from inspector.readers import open_trace\n"
        "for path in sys.argv[1:]: open_trace(path)\n"
        "assert 'pandas' not in sys.modules"
    )
    export = folder.with_suffix(".sqlite")
    subprocess.run([sys.executable, "-c", code, str(folder), str(export)], check=True, timeout=60)
