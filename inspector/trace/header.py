"""recording.json: what a recording says of itself, checked when it is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from inspector.configuration.settings import Setting
from inspector.errors import Unreadable
from inspector.trace.arrow_reader import map_file

FORMAT = 1
NAME = "recording.json"
# Far more than any real one; a bound for what a hostile one can make us read.
MOST_BYTES = 16 << 20

# Sums and differences of two such times still fit int64.
TIME_LIMIT_NS = 1 << 61
Time = Annotated[int, msgspec.Meta(ge=-TIME_LIMIT_NS, le=TIME_LIMIT_NS)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class Anchor(msgspec.Struct, frozen=True):
    """One moment on two clocks: that of the records' times (ns), and the wall clock (ns since 1970)."""

    monotonic_ns: Time
    epoch_ns: Time


class Said(msgspec.Struct, frozen=True):
    """One quality note: see `inspector.trace.quality.Note`."""

    code: str
    count: Count
    text: str
    first: str = ""


class Info(msgspec.Struct, frozen=True):
    """The fields of `TraceInfo` that the recording keeps."""

    producer: str = ""
    schema_version: str = ""
    origin_ns: Time = 0
    duration_ns: Annotated[int, msgspec.Meta(ge=0, le=TIME_LIMIT_NS)] = 0
    start_epoch_ns: Time | None = None
    basis: Literal["measured", "modelled", "simulated"] = "measured"
    details: dict[str, str] = {}
    missing: dict[str, str] = {}


class SavedColumn(msgspec.Struct, frozen=True):
    """A column of results: see `inspector.trace.results.ResultColumn`. `texts` is how many it has, -1 for numbers."""

    name: str
    texts: Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)] = -1
    has_absent: bool = False
    unit: str = ""
    meaning: str = ""
    is_moment: bool = False


class SavedTable(msgspec.Struct, frozen=True):
    """A table of results; its numbers and texts stand in files of their own."""

    name: str
    columns: list[SavedColumn] = []
    rows: Count = 0
    rows_in_file: Count = 0
    note: str = ""
    report: int = -1
    has_spans: bool = False


class SavedResults(msgspec.Struct, frozen=True):
    """What one run of a recipe left."""

    recipe: str
    title: str = ""
    tables: list[SavedTable] = []
    reports: list[str] = []
    details: dict[str, str] = {}
    description: str = ""


class _Version(msgspec.Struct):
    format: int


class Header(msgspec.Struct, frozen=True):
    """The whole file. `rows` is the number of rows of each table that has any, `names` that of names.arrow;
    `configuration` is what is known of how the workload was set, `results` what recipes worked out.

    In a recording that is not `complete`, times are those of the clock in `clock`; else they are trace times.
    """

    format: int
    state: Literal["recording", "complete", "recovered"]
    producers: list[str] = []
    host: str = ""
    command: list[str] = []
    clock: list[Anchor] = []
    probes: dict[str, dict[str, str]] = {}
    info: Info = Info()
    rows: dict[str, Count] = {}
    names: Count = 0
    quality: list[Said] = []
    configuration: list[Setting] = []
    results: list[SavedResults] = []


def encode(header: Header) -> bytes:
    """The bytes of recording.json."""
    return msgspec.json.format(msgspec.json.encode(header), indent=1) + b"\n"


def write(folder: Path, header: Header) -> None:
    """Write the header of a recording folder, in place of one that is there: the old one or the new, never a half.

    Raises OSError.
    """
    part = folder / f".{NAME}.part"
    file = os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(file, "wb") as out:
            out.write(encode(header))
        part.replace(folder / NAME)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def configure(folder: Path, configuration: list[Setting]) -> None:
    """Put those settings in place of the ones in a recording folder. Raises Unreadable, OSError."""
    head = read(folder)
    if head.configuration != configuration:
        write(folder, msgspec.structs.replace(head, configuration=configuration))


def decode(data: bytes, where: str) -> Header:
    """The header; raises Unreadable that names `where`."""
    try:
        version = msgspec.json.decode(data, type=_Version).format
        if version != FORMAT:
            raise Unreadable(f"{where} is of format {version}", f"this program knows {FORMAT}", "update the program")
        return msgspec.json.decode(data, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"cannot read {where}", str(error), "record or convert the trace again") from error


def read(folder: Path) -> Header:
    """The header of a recording folder; raises Unreadable."""
    data = map_file(folder / NAME)
    if len(data) > MOST_BYTES:
        raise Unreadable(f"cannot read {NAME} of {folder}", f"it has {len(data)} bytes", "record the trace again")
    return decode(bytes(data), f"{NAME} of {folder}")
