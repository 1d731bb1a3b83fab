"""Where the results of recipes lie: a folder, a zip of one, or one level further down for several recipes.

What is in a folder or zip is taken by its own listing, never by paths that a file in it names.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from inspector.errors import Unreadable

ANALYSIS = ".nsys-analysis"
ZIP_MAGIC = b"PK\x03\x04"
TABLES = (".parquet", ".csv")
_FILES = "files"
_OUTPUTS = frozenset(("trace", "analysis", "all_stats", "rank_stats"))
_NUMBERED = re.compile(r"-\d+$")
# Of a listing: recipes leave a dozen files.
_MOST_FILES = 10_000
# Results are small; what is larger is left out with a note.
MOST_BYTES = 1 << 30
_SLASH = "/"


@dataclass(frozen=True)
class Run:
    """The results of one recipe: its files by name, each with the name by which the place opens it."""

    folder: str
    files: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the folder without the number that nsys gives it: mostly that of the recipe."""
        return _NUMBERED.sub("", self.folder)

    @property
    def analysis(self) -> str | None:
        """The file that describes the run, as the place opens it; None when there is none."""
        return next((self.files[name] for name in sorted(self.files) if name.endswith(ANALYSIS)), None)

    @property
    def tables(self) -> dict[str, str]:
        """The outputs by name, without those that are there once more as text."""
        found: dict[str, str] = {}
        for suffix in TABLES:
            for name in sorted(self.files):
                if name.endswith(suffix):
                    found.setdefault(name.removesuffix(suffix), self.files[name])
        return found


class Place:
    """A folder or a zip. `sizes` holds the files, by path with slashes, with their bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path.parent if path.name.endswith(ANALYSIS) and path.is_file() else path
        self._zip: zipfile.ZipFile | None = None
        try:
            if self.path.is_dir():
                self.sizes = _in_folder(self.path)
            else:
                self._zip = zipfile.ZipFile(self.path)
                self.sizes = _in_zip(self._zip)
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise Unreadable(f"cannot read {path}", str(error), "unpack it, or run the recipe again") from error

    def runs(self) -> list[Run]:
        """The runs of recipes here, by the name of their folder."""
        folders: dict[str, dict[str, str]] = {}
        for path in sorted(self.sizes):
            folder, _, name = path.rpartition(_SLASH)
            folders.setdefault(folder, {})[name] = path
        found = [Run(PurePosixPath(folder).name or self.path.stem, files) for folder, files in folders.items()]
        return [run for run in found if _is_run(run)]

    def open(self, name: str) -> BinaryIO:
        """One of the files, to be closed by the caller. Raises Unreadable for what is too large or broken."""
        if self.sizes[name] > MOST_BYTES:
            raise Unreadable(f"{name} is too large", f"{self.sizes[name]:,} bytes", "open the reports instead")
        try:
            if self._zip is None:
                return (self.path / name).open("rb")
            with self._zip.open(name) as packed:
                return io.BytesIO(packed.read(MOST_BYTES))
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise Unreadable(f"cannot read {name} of {self.path}", why, "run the recipe again") from error

    def close(self) -> None:
        """Let go of the file."""
        if self._zip is not None:
            self._zip.close()


def _is_run(run: Run) -> bool:
    tables = set(run.tables)
    if run.analysis is not None:
        return True
    return _FILES in tables and len(tables) > 1 and bool(tables & _OUTPUTS)


def _in_folder(folder: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in sorted(folder.iterdir()):
        inner = sorted(path.iterdir()) if path.is_dir() and not path.is_symlink() else [path]
        for file in inner:
            if len(found) < _MOST_FILES and file.suffix in (ANALYSIS, *TABLES) and file.is_file():
                found[file.relative_to(folder).as_posix()] = file.stat().st_size
    return found


def _in_zip(archive: zipfile.ZipFile) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in archive.infolist()[:_MOST_FILES]:
        suffix = PurePosixPath(entry.filename).suffix
        if not entry.is_dir() and suffix in (ANALYSIS, *TABLES) and not entry.flag_bits & 1:
            found[entry.filename] = entry.file_size
    return found
