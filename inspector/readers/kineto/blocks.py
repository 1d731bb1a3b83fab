"""The text of a trace in blocks, whatever it is packed in; the next block is unpacked while this one is read."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from inspector.errors import Unreadable

BLOCK_BYTES = 4 << 20
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_GZIP_WINDOW = 31
_PACKED_BYTES = 1 << 18


class Text:
    """Blocks of the unpacked text of `path`: `position` of `size` packed bytes; `broken` tells of a damaged end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size
        self.position = 0
        self.broken = ""

    def __iter__(self) -> Iterator[bytes]:
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(1))
            blocks = self._blocks(stack)
            waiting = pool.submit(next, blocks, b"")
            while block := waiting.result():
                waiting = pool.submit(next, blocks, b"")
                yield block

    def _blocks(self, stack: ExitStack) -> Iterator[bytes]:
        file = stack.enter_context(self._path.open("rb"))
        head = file.read(4)
        file.seek(0)
        if head.startswith(_GZIP):
            yield from self._gzip(file.read)
        elif head == _ZIP:
            yield from self._zip(stack)
        else:
            while block := file.read(BLOCK_BYTES):
                self.position += len(block)
                yield block

    def _gzip(self, read: object) -> Iterator[bytes]:
        unpacker = zlib.decompressobj(_GZIP_WINDOW)
        parts: list[bytes] = []
        gathered = 0
        packed = b""
        while True:
            if not packed:
                packed = read(_PACKED_BYTES)  # type: ignore[operator]
                if not packed:
                    break
                self.position += len(packed)
            try:
                part = unpacker.decompress(packed, BLOCK_BYTES)
            except zlib.error as error:
                self.broken = f"the gzip data is damaged ({error})"
                break
            packed = unpacker.unconsumed_tail
            if unpacker.eof:
                # Several gzip members one after the other are one text.
                packed = unpacker.unused_data
                unpacker = zlib.decompressobj(_GZIP_WINDOW)
                if packed[:2] != _GZIP:
                    packed = b""
            parts.append(part)
            gathered += len(part)
            if gathered >= BLOCK_BYTES:
                yield b"".join(parts)
                parts, gathered = [], 0
        if parts:
            yield b"".join(parts)

    def _zip(self, stack: ExitStack) -> Iterator[bytes]:
        try:
            archive = stack.enter_context(zipfile.ZipFile(self._path))
            member = trace_in(archive)
            file = stack.enter_context(archive.open(member))
            while block := file.read(BLOCK_BYTES):
                self.position = min(self.position + len(block) * self.size // max(member.file_size, 1), self.size)
                yield block
        except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
            raise Unreadable(f"cannot unpack {self._path}", str(error), "unpack it by hand") from error


def trace_in(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The member that holds the trace: the largest .json, else the largest file. Raises RuntimeError when empty."""
    files = [member for member in archive.infolist() if not member.is_dir()]
    if not files:
        raise RuntimeError("the archive is empty")
    return max(files, key=lambda member: (member.filename.endswith(".json"), member.file_size))


def first_bytes(head: bytes, path: Path) -> bytes:
    """The beginning of the unpacked text, as far as `head` (the first bytes of the file) reaches; b'' for no text."""
    try:
        if head.startswith(_GZIP):
            return zlib.decompressobj(_GZIP_WINDOW).decompress(head, 1 << 20)
        if head.startswith(_ZIP):
            with zipfile.ZipFile(path) as archive, archive.open(trace_in(archive)) as file:
                return file.read(1 << 16)
    except (zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError):
        return b""
    return head
