"""Nsight Systems reports (.nsys-rep, .qdrep): a closed format, so the `nsys` program exports them and we read that.

The export lies in the cache folder, by path, size and time of the report, so that it is made once. Tested against
a program of that name that stands in for `nsys`, which was never run for this.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import platformdirs

from inspector.errors import Missing, Unreadable
from inspector.readers.nsys import FolderSource, read_tables
from inspector.readers.reader import Progress, Report, silent
from inspector.trace.trace import Trace

NAME = "nsys-rep"
SUFFIXES = (".nsys-rep", ".qdrep")

_MAGIC = b"NVIDIA Tegra Profiler Report "
_REPORT_EVERY_S = 0.1
_GRACE_S = 5.0
_KEPT = 4
_PERCENT = re.compile(rb"(\d{1,3})(?:\.\d+)?\s*%")


def sniff(head: bytes, path: Path) -> float:
    """Certainty that `path` is a report, by its first bytes."""
    return 1.0 if head.startswith(_MAGIC) else 0.0


def read(path: Path, report: Report) -> Trace:
    """Export the report, or take the export made earlier, and read that.

    Raises Missing when there is no `nsys` here, Unreadable when it fails, Cancelled (the child is ended).
    """
    try:
        stat = path.stat()
    except OSError as error:
        raise Unreadable(f"cannot read {path}", error.strerror or str(error), "check the path") from error
    key = hashlib.sha256(f"{path.absolute()}\0{stat.st_size}\0{stat.st_mtime_ns}".encode()).hexdigest()[:24]
    cache = platformdirs.user_cache_path("inflight-inspector", appauthor=False) / "nsys"
    folder = cache / key
    if not folder.is_dir():
        program = _program(path)
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".part-") as temporary:
            made = Path(temporary) / "export"
            _export(program, path, made, stat.st_size, report)
            if not folder.is_dir():
                made.rename(folder)
        _trim(cache, folder)
    os.utime(folder)
    try:
        source = FolderSource(folder)
        return read_tables(source, path, source.kind, source.size, report)
    except Unreadable:
        # Not to be met again: the next try exports anew.
        shutil.rmtree(folder, ignore_errors=True)
        raise


def export(path: Path, out: Path, report: Report = silent) -> Path:
    """Export the report into the folder `out`, which must not be there; the folder. Raises as `read` does."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise Unreadable(f"cannot read {path}", error.strerror or str(error), "check the path") from error
    _export(_program(path), path, out, size, report)
    return out


def _program(path: Path) -> str:
    program = shutil.which("nsys")
    if program is None:
        command = shlex.join(_command("nsys", Path(path.name), Path(f"{path.stem}_pqtdir")))
        raise Missing(
            f"{path.name} can only be read by the nsys program",
            "nsys is not on this machine's PATH",
            f"export it where it was recorded with `{command}` and open the folder",
        )
    return program


def _command(program: str, path: Path, out: Path, json: bool = True) -> list[str]:
    options = ["--type=parquetdir", *(["--include-json=true"] if json else [])]
    return [program, "export", *options, "-o", os.fspath(out), os.fspath(path)]


def _export(program: str, path: Path, out: Path, size: int, report: Report) -> None:
    with tempfile.TemporaryFile() as said:
        code = _run(_command(program, path.absolute(), out), said, size, report)
        said.seek(0)
        text = said.read().decode(errors="replace")
        if code and "include-json" in text:
            # Older releases write the JSON without being asked, and do not know the option.
            said.seek(0)
            said.truncate()
            code = _run(_command(program, path.absolute(), out, json=False), said, size, report)
            said.seek(0)
            text = said.read().decode(errors="replace")
    if code or not out.is_dir():
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        raise Unreadable(
            f"nsys could not export {path}",
            lines[-1] if lines else f"it ended with {code} and said nothing",
            "a report needs an nsys of its own version or a newer one",
        )


def _run(command: Sequence[str], said: IO[bytes], size: int, report: Report) -> int:
    """Run it, telling its progress; its exit code. Whatever happens, it has ended afterwards."""
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
    except OSError as error:
        raise Missing("nsys cannot be started", error.strerror or str(error), f"check {command[0]}") from error
    try:
        while True:
            try:
                return child.wait(_REPORT_EVERY_S)
            except subprocess.TimeoutExpired:
                report(Progress("nsys export", size * _percent(said) // 100, size))
    finally:
        if child.poll() is None:
            _end(child)


def _percent(said: IO[bytes]) -> int:
    """The last percentage that the program wrote. The child shares the file's position: it is read by offset."""
    length = os.fstat(said.fileno()).st_size
    found = _PERCENT.findall(os.pread(said.fileno(), 4096, max(0, length - 4096)))
    return min(int(found[-1]), 100) if found else 0


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the program and those that it started."""
    os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _trim(cache: Path, keep: Path) -> None:
    """Remove the exports that were not used for longest: they are as large as the reports."""
    others = [folder for folder in cache.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
    others.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in [folder for folder in others if folder != keep][_KEPT - 1 :]:
        shutil.rmtree(folder, ignore_errors=True)
