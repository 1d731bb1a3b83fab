"""The end of a recording: its streams become one file per table, which opens at once.

What the tables hold is what the reader of unfinished recordings finds in the streams: it is that reader which is asked.
Until the header says "complete" the streams are the recording, so breaking off at any point loses nothing.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

import inspector
from inspector.trace import header, lock
from inspector.trace.growing import bytes_on_disk
from inspector.trace.header import Header, Info, Said
from inspector.trace.ring import SUFFIX as RING_SUFFIX
from inspector.trace.save import write_tables
from probes.inprocess.producer import UNMADE
from probes.inprocess.watch import OFF

OUTPUT = "output.log"
_LEFTOVERS = (".arrows", RING_SUFFIX, UNMADE, OFF)
# Tables are gathered bit by bit in files without a name, which double when they are full and hold some columns more.
# To put rows in their places that came late takes a table at a time into the memory, about three times.
_FIXED_BYTES = 256 << 20
_PER_BYTE = 3
_DISK_PER_BYTE = 4
# Without a disk for that, everything is in the memory.
_PER_BYTE_OF_ALL = 4


def compact(folder: Path, head: Header) -> bool:
    """Turn the streams of the recording whose header is `head` into tables; False when it is too large for the memory.

    Raises OSError when the disk does not take it, Unreadable when the streams do not read; then the streams stay.
    """
    if _memory(folder) > _available():
        return False
    trace = inspector.open(folder)
    try:
        write_tables(trace, folder)
        info = trace.info
        header.write(
            folder,
            msgspec.structs.replace(
                head,
                state="complete",
                info=Info(
                    producer=head.info.producer,
                    schema_version=head.info.schema_version,
                    origin_ns=info.origin_ns,
                    duration_ns=info.duration_ns,
                    start_epoch_ns=info.start_epoch_ns,
                    basis=info.basis,
                    details={key: text for key, text in info.details.items() if key != "state"},
                    missing=dict(info.missing),
                ),
                rows={name: len(table) for name, table in trace.tables.items() if len(table)},
                names=len(trace.names),
                quality=[
                    Said(note.code, note.count, note.text, note.first)
                    for note in trace.quality.notes
                    if note.code != "recovered"
                ],
            ),
        )
    except OSError:
        for path in folder.glob("*.arrow"):
            path.unlink()
        raise
    for path in folder.iterdir():
        if path.suffix in _LEFTOVERS or path.name in (OUTPUT, lock.NAME):
            path.unlink()
    return True


def _memory(folder: Path) -> int:
    """About how many bytes of memory it takes at most."""
    sizes: dict[str, int] = {}
    for path in folder.glob("*.arrows"):
        table = path.name.split(".")[-2]
        sizes[table] = sizes.get(table, 0) + path.stat().st_size
    total = sum(sizes.values())
    if total < _FIXED_BYTES // _PER_BYTE_OF_ALL or total * _DISK_PER_BYTE > bytes_on_disk():
        return total * _PER_BYTE_OF_ALL
    return _FIXED_BYTES + _PER_BYTE * max(sizes.values(), default=0)


def _available() -> int:
    """Bytes of memory that can be had; a lot where the system does not say."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 1 << 62
