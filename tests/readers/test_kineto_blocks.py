"""Packed traces: several members, damage in the middle, what is found behind a long head, and what is no trace."""

from __future__ import annotations

import gzip
import json
import random
import zipfile
from pathlib import Path

import pytest

from inspector.errors import Unreadable
from inspector.readers import kineto, open_trace
from inspector.readers.kineto import blocks
from inspector.readers.kineto.blocks import Text
from inspector.readers.reader import HEAD_BYTES
from tests.readers.kineto_events import Json, call, kernel


def events(count: int) -> list[Json]:
    return [event for n in range(count) for event in (call(9, 10 * n + 1, n + 1), kernel(0, 10 * n + 3, n + 1))]


def unpacked(path: Path) -> bytes:
    return b"".join(Text(path))


@pytest.mark.parametrize("seed", range(8))
def test_members_and_blocks_of_any_size_are_one_text(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    text = draw.randbytes(3_000) + bytes(20_000) + draw.randbytes(500)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", draw.choice((1, 7, 4096)))
    monkeypatch.setattr(blocks, "_PACKED_BYTES", draw.choice((1, 2, 3, 100, 5000)))
    cuts = sorted(draw.sample(range(len(text)), 3))
    parts = [text[low:high] for low, high in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    path = tmp_path / "members"
    path.write_bytes(b"".join(map(gzip.compress, parts)) + draw.choice((b"", bytes(3), b"\x1f")))
    source = Text(path)
    assert b"".join(source) == text
    assert source.broken == ""
    assert source.position <= source.size


@pytest.mark.parametrize("seed", range(3))
def test_what_stands_before_damage_is_unpacked(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    text = json.dumps({"traceEvents": events(3_000)}).encode()
    packed = bytearray(gzip.compress(text))
    at = draw.randrange(len(packed) // 4, len(packed) - 8)
    path = tmp_path / "damaged"
    path.write_bytes(packed[:at])
    whole_before = unpacked(path)
    packed[at : at + 4] = bytes(byte ^ 0xFF for byte in packed[at : at + 4])
    path.write_bytes(packed)
    source = Text(path)
    found = b"".join(source)
    assert text.startswith(whole_before)
    assert found.startswith(whole_before)
    assert source.broken
    trace = open_trace(path)
    assert len(trace["kernels"]) >= whole_before.count(b'"kernel"') - 1
    assert trace.quality.count("truncated") + trace.quality.count("invalid") >= 1


def test_a_wrong_checksum_costs_nothing_but_a_note(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(json.dumps({"traceEvents": events(3)}).encode()))
    packed[-8] ^= 0xFF
    path = tmp_path / "trace"
    path.write_bytes(packed)
    trace = open_trace(path)
    assert len(trace["kernels"]) == 3
    (note,) = [note for note in trace.quality.notes if note.severity != "info"]
    assert (note.code, note.count) == ("invalid", 1)
    assert "damaged" in note.text


def test_a_zip_damaged_in_the_middle_gives_what_stands_before(tmp_path: Path) -> None:
    path = tmp_path / "trace.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("trace.json", json.dumps({"traceEvents": events(30_000)}))
    packed = path.read_bytes()
    assert len(packed) > blocks.BLOCK_BYTES
    path.write_bytes(packed.replace(b'"ts": 299993', b'"ts": 299994'))
    trace = open_trace(path)
    assert 20_000 < len(trace["kernels"]) <= 30_000
    assert trace.quality.count("truncated") == 1


@pytest.mark.parametrize("packing", ["plain", "gzip", "zip"])
def test_a_list_behind_a_long_head_is_found(packing: str, tmp_path: Path) -> None:
    head = {"metadata": {str(n): "some text of somebody" for n in range(10_000)}}
    text = json.dumps({**head, "traceEvents": events(3)}).encode()
    path = tmp_path / "unknown"
    if packing == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("readme.txt", "not this one" * 50_000)
            archive.writestr("worker/trace.json", text)
    else:
        path.write_bytes(text if packing == "plain" else gzip.compress(text))
    assert len(open_trace(path)["kernels"]) == 3


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": "traceEvents"}',
        b"[]",
        b'[{"phase": 1}]',
        b'"traceEvents": [',
        b"",
        b"\x1f\x8b\x08junk",
        b"PK\x03\x04junk",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_what_is_no_trace_is_not_claimed(text: bytes, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "unknown"
    path.write_bytes(gzip.compress(text) if packed else text)
    assert kineto.sniff(path.read_bytes()[:HEAD_BYTES], path) == 0


def test_a_trace_that_breaks_off_in_its_head_says_so(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "na')
    with pytest.raises(Unreadable, match="no event list"):
        open_trace(path)
