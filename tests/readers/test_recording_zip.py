"""A zip of a recording opens from the cache; one that is no such thing, or a trap, is refused."""

from __future__ import annotations

import os
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.errors import Cancelled, InspectorError, Unreadable
from inspector.readers import recording
from inspector.readers.reader import Progress, silent
from inspector.trace import header
from inspector.trace.save import save
from tests.readers.recordings import assert_equal, full_trace, opened, use


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "inflight-inspector" / "recordings"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zips") / "a.inflight"
    save(full_trace(), path)
    return path


def pack(path: Path, folder: Path, under: str = "a.inflight/", how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, under + file.name)
    return path


def sniffed(path: Path) -> float:
    return recording.sniff(path.read_bytes()[:64], path)


@pytest.mark.parametrize("under", ["a.inflight/", "", "größe/"])
@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_it_opens(cache: Path, tmp_path: Path, folder: Path, under: str, how: int) -> None:
    path = pack(tmp_path / "a.zip", folder, under, how)
    assert sniffed(path) > 0.5
    trace = opened(path)
    assert_equal(trace, full_trace())
    assert trace.info.paths == (str(path),)
    assert cache.stat().st_mode & 0o777 == 0o700
    files = list(cache.glob("*/*"))
    assert len(files) == len(list(folder.iterdir()))
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_it_is_unpacked_once_and_again_when_it_changed(cache: Path, tmp_path: Path, folder: Path) -> None:
    path = pack(tmp_path / "a.zip", folder)
    steps: list[Progress] = []
    recording.read(path, steps.append)
    assert "unpacking" in {step.stage for step in steps}
    steps.clear()
    recording.read(path, steps.append)
    assert "unpacking" not in {step.stage for step in steps}
    os.utime(path, ns=(0, 0))
    recording.read(path, steps.append)
    assert "unpacking" in {step.stage for step in steps}
    assert len(list(cache.iterdir())) == 2


def test_the_cache_keeps_the_last_few(cache: Path, tmp_path: Path, folder: Path) -> None:
    path = pack(tmp_path / "a.zip", folder)
    first = opened(path)
    for time in range(12):
        os.utime(path, ns=(time, time))
        opened(path)
    assert len(list(cache.iterdir())) == 8
    use(first)


def test_a_cancelled_one_leaves_nothing(cache: Path, tmp_path: Path, folder: Path) -> None:
    def cancel(progress: Progress) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        recording.read(pack(tmp_path / "a.zip", folder), cancel)
    assert list(cache.iterdir()) == []


def test_names_that_lead_elsewhere_are_left_out(cache: Path, tmp_path: Path, folder: Path) -> None:
    path = pack(tmp_path / "a.zip", folder)
    with zipfile.ZipFile(path, "a") as archive:
        for name in (
            "../kernels.arrow",
            "/tmp/kernels.arrow",
            "a.inflight/../../x.arrow",
            "a.inflight/run.sh",
            "c\\x.arrow",
        ):
            archive.writestr(name, b"trap")
    trace = opened(path)
    assert_equal(trace, full_trace())
    assert sorted(file.name for file in cache.glob("*/*")) == sorted(file.name for file in folder.iterdir())
    assert not list(tmp_path.rglob("x.arrow"))
    assert not list(tmp_path.rglob("run.sh"))


def test_not_one_recording(cache: Path, tmp_path: Path, folder: Path) -> None:
    two = pack(tmp_path / "two.zip", folder)
    with zipfile.ZipFile(two, "a") as archive:
        archive.writestr(f"b.inflight/{header.NAME}", b"{}")
    none = tmp_path / "none.zip"
    with zipfile.ZipFile(none, "w") as archive:
        archive.writestr("a.txt", b"")
    assert sniffed(two) == sniffed(none) == 0
    with pytest.raises(Unreadable, match="several"):
        opened(two)
    with pytest.raises(Unreadable):
        opened(none)
    twice = pack(tmp_path / "twice.zip", folder)
    with zipfile.ZipFile(twice, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr(f"a.inflight/{header.NAME}", b"{}")
    with pytest.raises(Unreadable, match="twice"):
        opened(twice)


def test_a_bomb_is_not_unpacked(cache: Path, tmp_path: Path, folder: Path) -> None:
    path = pack(tmp_path / "bomb.zip", folder)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.inflight/x.kernels.arrows", bytes(64 << 20))
    with pytest.raises(Unreadable, match="unpacks to 67,"):
        opened(path)
    assert list(cache.iterdir()) == []


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_spoilt_ones_end_in_a_trace_or_an_error(cache: Path, tmp_path: Path, folder: Path, data: st.DataObject) -> None:
    path = pack(tmp_path / "a.zip", folder)
    raw = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=3), "bytes"):
        raw[at] ^= 1 << data.draw(st.integers(0, 7), "bit")
    del raw[len(raw) - data.draw(st.sampled_from([0, 0, 1, 30, 1000]), "cut") :]
    path.write_bytes(raw)
    recording.sniff(bytes(raw[:64]), path)
    try:
        use(recording.read(path, silent))
    except InspectorError:  # any other exception is a failure
        return
