"""The text of a trace in blocks, whatever it is packed in; the next block is unpacked while this one is read."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from inspector.errors import Unreadable

BLOCK_BYTES = 4 << 20
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_GZIP_WINDOW = 31
# What the zip module raises on damage, passwords and odd ways of packing.
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, lzma.LZMAError)
_PACKED_BYTES = 1 << 18
# Enough to see what a text is, however well it is packed.
_PACKED_HEAD = 1 << 12


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
            yield from self._gzip(file)
        elif head == _ZIP:
            yield from self._zip(stack)
        else:
            while block := file.read(BLOCK_BYTES):
                self.position += len(block)
                yield block

    def _gzip(self, file: BinaryIO) -> Iterator[bytes]:
        unpacker = zlib.decompressobj(_GZIP_WINDOW)
        parts: list[bytes] = []
        gathered = 0
        packed = self._read(file)
        while packed and not self.broken:
            before = unpacker.copy()
            try:
                part = unpacker.decompress(packed, BLOCK_BYTES)
            except zlib.error as error:
                self.broken = f"the gzip data is damaged ({error})"
                part = _before_damage(before, packed)
            parts.append(part)
            gathered += len(part)
            if gathered >= BLOCK_BYTES:
                yield b"".join(parts)
                parts, gathered = [], 0
            if unpacker.eof:
                # Several gzip members one after the other are one text; anything else after one is not of it.
                packed = unpacker.unused_data
                if len(packed) < len(_GZIP):
                    packed += self._read(file)
                if not packed.startswith(_GZIP):
                    break
                unpacker = zlib.decompressobj(_GZIP_WINDOW)
            else:
                packed = unpacker.unconsumed_tail or self._read(file)
        if not self.broken:
            parts.append(unpacker.flush())
        if any(parts):
            yield b"".join(parts)

    def _read(self, file: BinaryIO) -> bytes:
        packed = file.read(_PACKED_BYTES)
        self.position += len(packed)
        return packed

    def _zip(self, stack: ExitStack) -> Iterator[bytes]:
        try:
            archive = stack.enter_context(zipfile.ZipFile(self._path))
            member = trace_in(archive)
            file = stack.enter_context(archive.open(member))
        except _ZIP_ERRORS as error:
            raise Unreadable(f"cannot unpack {self._path}", str(error), "unpack it by hand") from error
        try:
            while block := file.read(BLOCK_BYTES):
                self.position = min(self.position + len(block) * self.size // max(member.file_size, 1), self.size)
                yield block
        except _ZIP_ERRORS as error:
            self.broken = f"the zip data is damaged ({error})"


def _before_damage(unpacker: zlib._Decompress, packed: bytes) -> bytes:
    """What can be unpacked of a piece that holds damage."""
    parts: list[bytes] = []
    step = len(packed)
    while step:
        before = unpacker.copy()
        try:
            parts.append(unpacker.decompress(packed[:step]))
            packed = packed[step:]
        except zlib.error:
            unpacker = before
            step //= 2
        if not packed:
            break
    return b"".join(parts)


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
            return _before_damage(zlib.decompressobj(_GZIP_WINDOW), head[:_PACKED_HEAD])
        if head.startswith(_ZIP):
            with zipfile.ZipFile(path) as archive, archive.open(trace_in(archive)) as file:
                return file.read(1 << 16)
    except (*_ZIP_ERRORS, OSError):
        return b""
    return head


def first_block(path: Path) -> bytes:
    """The first megabytes of the unpacked text; b'' for none."""
    try:
        return next(iter(Text(path)), b"")
    except (Unreadable, OSError):
        return b""
