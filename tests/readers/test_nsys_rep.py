"""Native reports, through a program that stands in for `nsys`: the real one has never been run here."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from inspector.errors import Cancelled, Missing, Unreadable
from inspector.readers import nsys_rep, open_trace
from inspector.readers.reader import Progress, silent
from tests.readers.nsys_export import CALL, KERNEL, STRINGS, to_folder, write

MAGIC = b"NVIDIA Tegra Profiler Report 2025@6@1@190-256136895201v0."
# Says what it was asked, does what a file beside it says, and puts a finished export where it was told to.
STAND_IN = """
import os, pathlib, shutil, signal, subprocess, sys
here = pathlib.Path(__file__).parent
with (here / "asked").open("a") as file:
    file.write(" ".join(sys.argv[1:]) + chr(10))
how = (here / "how").read_text()
if how == "old" and "--include-json=true" in sys.argv:
    sys.exit("unrecognised option '--include-json=true'")
if how == "fail":
    print("Importing...")
    sys.exit("The report was made by a newer version")
if how == "wait":
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    (here / "pids").write_text(f"{os.getpid()} {child.pid}")
    print("Processing [====      ] 42%", flush=True)
    signal.pause()
if how == "slow":
    print("Processing 7 %", flush=True)
    (here / "gate").open().read()
shutil.copytree(here / "export", sys.argv[sys.argv.index("-o") + 1])
"""


class Nsys:
    """The stand-in, the report, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        content = {
            "StringIds": STRINGS,
            "CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL],
            "CUPTI_ACTIVITY_KIND_RUNTIME": [CALL],
        }
        to_folder(write(folder / "export.sqlite", content), folder / "export", "parquet")
        script = folder / "nsys"
        script.write_text(f"#!{sys.executable}\n{STAND_IN}")
        script.chmod(0o755)
        self.report = folder / "my run.nsys-rep"
        self.report.write_bytes(MAGIC + bytes(1000))
        self.behave("well")

    def behave(self, how: str) -> None:
        (self.folder / "how").write_text(how)

    @property
    def asked(self) -> list[str]:
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nsys:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "bin"
    folder.mkdir()
    found = Nsys(folder)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return found


def exports(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache" / "inflight-inspector" / "nsys").iterdir())


def test_a_report_is_exported_once(nsys: Nsys, tmp_path: Path) -> None:
    for _ in range(2):
        trace = open_trace(nsys.report)
        assert len(trace["kernels"]) == 1
        assert trace.info.kind == "nsys-parquet"
        assert trace.info.paths == (str(nsys.report),)
    assert len(nsys.asked) == 1
    assert nsys.asked[0].startswith("export --type=parquetdir --include-json=true -o ")
    assert nsys.asked[0].endswith(str(nsys.report))
    os.utime(nsys.report, ns=(1, 1))
    open_trace(nsys.report)
    assert len(nsys.asked) == 2
    assert len(exports(tmp_path)) == 2


def test_only_the_exports_used_last_are_kept(nsys: Nsys, tmp_path: Path) -> None:
    for at in range(7):
        os.utime(nsys.report, ns=(at, at))
        open_trace(nsys.report)
    assert len(exports(tmp_path)) == 4


def test_a_report_is_known_by_its_first_bytes(nsys: Nsys, tmp_path: Path) -> None:
    path = tmp_path / "unknown"
    shutil.copy(nsys.report, path)
    assert len(open_trace(path)["kernels"]) == 1
    path.write_bytes(b"NVIDIA Tegra")
    assert nsys_rep.sniff(b"NVIDIA Tegra", path) == 0


def test_without_nsys_the_message_holds_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "run 1.nsys-rep"
    path.write_bytes(MAGIC)
    with pytest.raises(Missing) as caught:
        open_trace(path)
    assert caught.value.exit_code == 4
    command = "nsys export --type=parquetdir --include-json=true -o 'run 1_pqtdir' 'run 1.nsys-rep'"
    assert command in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_older_nsys_that_does_not_know_an_option(nsys: Nsys) -> None:
    nsys.behave("old")
    assert len(open_trace(nsys.report)["kernels"]) == 1
    assert [("--include-json=true" in line) for line in nsys.asked] == [True, False]


def test_a_failed_export_says_what_nsys_said(nsys: Nsys, tmp_path: Path) -> None:
    nsys.behave("fail")
    with pytest.raises(Unreadable, match="made by a newer version") as caught:
        open_trace(nsys.report)
    assert "\n" not in str(caught.value)
    assert exports(tmp_path) == []


def test_progress_is_that_of_nsys(nsys: Nsys) -> None:
    nsys.behave("slow")
    gate = nsys.folder / "gate"
    os.mkfifo(gate)
    seen: list[Progress] = []

    def report(progress: Progress) -> None:
        if progress.stage == "nsys export" and progress.done and not seen:
            seen.append(progress)
            gate.write_text("go on")

    nsys_rep.read(nsys.report, report)
    size = nsys.report.stat().st_size
    assert [(progress.done, progress.total) for progress in seen] == [(size * 7 // 100, size)]


def test_cancelling_ends_nsys_and_what_it_started(nsys: Nsys, tmp_path: Path) -> None:
    nsys.behave("wait")

    def report(progress: Progress) -> None:
        if progress.done:
            raise Cancelled

    with pytest.raises(Cancelled):
        nsys_rep.read(nsys.report, report)
    parent, child = map(int, (nsys.folder / "pids").read_text().split())
    with pytest.raises(ProcessLookupError):
        os.kill(parent, 0)
    assert not running(child)
    assert exports(tmp_path) == []


def running(pid: int) -> bool:
    """Whether a process is there and has not been told to end."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return False
    fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
    pending = int(fields["SigPnd"], 16) | int(fields["ShdPnd"], 16)
    return not (fields["State"].startswith("Z") or pending >> (signal.SIGTERM - 1) & 1)


def test_a_report_that_is_not_there_any_more(nsys: Nsys) -> None:
    nsys.report.unlink()
    with pytest.raises(Unreadable):
        nsys_rep.read(nsys.report, silent)


def test_a_damaged_export_in_the_cache_is_made_anew(nsys: Nsys, tmp_path: Path) -> None:
    open_trace(nsys.report)
    (made,) = (tmp_path / "cache" / "inflight-inspector" / "nsys").iterdir()
    (made / "StringIds.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(Unreadable, match="StringIds"):
        open_trace(nsys.report)
    assert len(open_trace(nsys.report)["kernels"]) == 1
