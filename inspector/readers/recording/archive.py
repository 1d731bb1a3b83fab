"""A zip of one recording, unpacked into the cache once and mapped from there.

A zip may hold anything: only plain files with the names of a recording's are taken out, under names of our own.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path

import platformdirs

from inspector.errors import InspectorError, Unreadable
from inspector.readers.reader import Progress, Report
from inspector.trace import header

MAGIC = b"PK\x03\x04"
# One folder, or none, and a name that a recording's file can have.
_ENTRY = re.compile(r"(?:([^/\\]+)/)?(recording\.json|[A-Za-z0-9_-]+(?:\.[a-z_]+)?\.arrows?)")
# Columns pack to a tenth, seldom to a thirtieth. What claims more is more likely a trap.
_MOST_RATIO = 100
_SMALL_BYTES = 16 << 20
_CHUNK = 1 << 20
# Unpacked recordings that are kept.
_KEPT = 8


def holds_recording(path: Path) -> bool:
    """Whether it is a zip with one recording in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(entry.name == header.NAME for entry in _entries(archive))
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError, Unreadable):
        return False


def extract(path: Path, report: Report) -> Path:
    """The folder in the cache that holds what `path` holds; made when it is not there. Raises Unreadable, Cancelled."""
    try:
        status = path.stat()
        key = hashlib.sha256(f"{path.resolve()}\n{status.st_size}\n{status.st_mtime_ns}".encode()).hexdigest()[:32]
        cache = Path(platformdirs.user_cache_dir("inflight-inspector")) / "recordings"
        folder = cache / f"{key}.inflight"
        if folder.is_dir():
            os.utime(folder)
            return folder
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{key}.", suffix=".part", dir=cache))
        try:
            with zipfile.ZipFile(path) as archive:
                _unpack(archive, path, part, report)
            if not folder.exists():
                part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        _forget_oldest(cache)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise Unreadable(f"cannot unpack {path}", str(error), "zip the .inflight folder again") from error
    except OSError as error:
        raise InspectorError(
            f"cannot unpack {path}", error.strerror or str(error), "unzip it yourself and open the folder"
        ) from error
    return folder


class _Entry:
    """An entry that belongs to the recording, and the name of its file."""

    def __init__(self, info: zipfile.ZipInfo, folder: str, name: str) -> None:
        self.info, self.folder, self.name = info, folder, name


def _entries(archive: zipfile.ZipFile) -> list[_Entry]:
    found = [
        _Entry(info, match[1] or "", match[2])
        for info in archive.infolist()
        if (match := _ENTRY.fullmatch(info.filename)) and not info.is_dir()
    ]
    folders = {entry.folder for entry in found if entry.name == header.NAME}
    if len(folders) > 1:
        raise Unreadable("it holds several recordings", "", "zip one .inflight folder")
    found = [entry for entry in found if entry.folder in folders]
    if len({entry.name for entry in found}) != len(found):
        raise Unreadable("it holds a file twice", "", "zip the .inflight folder again")
    return found


def _unpack(archive: zipfile.ZipFile, path: Path, part: Path, report: Report) -> None:
    entries = _entries(archive)
    total = sum(entry.info.file_size for entry in entries)
    # Of the file, not of its entries: those may overlap.
    packed = path.stat().st_size
    if total > max(_SMALL_BYTES, packed * _MOST_RATIO):
        raise Unreadable(
            f"{path} unpacks to {total:,} bytes", f"out of {packed:,}", "unzip it yourself if you trust it"
        )
    if total > shutil.disk_usage(part).free // 2:
        raise Unreadable(f"{path} unpacks to {total:,} bytes", "too much for the cache's disk", "unzip it elsewhere")
    done = 0
    for entry in entries:
        file = os.open(part / entry.name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        # zipfile gives at most the size that the directory claims, and checks the sum at the end.
        with archive.open(entry.info) as source, open(file, "wb") as out:
            while chunk := source.read(_CHUNK):
                out.write(chunk)
                done += len(chunk)
                report(Progress("unpacking", done, total))


def _forget_oldest(cache: Path) -> None:
    """What is mapped somewhere stays readable there until it is closed."""
    folders = sorted(cache.glob("*.inflight"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in folders[_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)
