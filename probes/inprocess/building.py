"""Native libraries of ours: those that came with the program, or compiled once into the user's cache.

A C compiler is all that it takes; no CUDA headers. A failure is a sentence, never an error.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .native_operators import cache_folder, writable_by_others

SHIPPED = Path(__file__).parent / "built"
"""Where a package for one kind of machine has them."""
_FLAGS = ("-O2", "-shared", "-fPIC")
_LIBRARIES = ("-ldl", "-lpthread", "-lm")
_PATIENCE_S = 60


def name_of(sources: Sequence[Path], machine: str = platform.machine()) -> str:
    """What the library of these sources is called on this kind of machine: others have other names."""
    source = b"".join(path.read_bytes() for path in sources)
    key = hashlib.sha256(machine.encode() + source).hexdigest()[:16]
    return f"{sources[0].stem}-{machine}-{key}.so"


def shipped(sources: Sequence[Path]) -> Path | None:
    """The library that came with the program, where it serves here."""
    library = SHIPPED / name_of(sources)
    if not library.exists():
        return None
    try:
        # One that was made where the C library is newer cannot be loaded, and is compiled anew.
        ctypes.CDLL(str(library))
    except OSError:
        return None
    return library


def build(sources: Sequence[Path], folder: Path | None = None) -> Path | str:
    """The library of `sources` (the C file, and what it includes), compiled where it is neither shipped nor cached yet;
    a sentence when there is none.
    """
    came = shipped(sources)
    if folder is None and came is not None:
        return came
    library = (folder or cache_folder()) / name_of(sources)
    try:
        library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if writable_by_others(library.parent):
            return f"{library.parent} can be written by others, so nothing is loaded from it"
        if library.exists():
            return library
        unfinished = library.with_suffix(f".{os.getpid()}")
        why = compile_into(sources[0], unfinished)
        if why:
            unfinished.unlink(missing_ok=True)
            return why
        unfinished.replace(library)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot build {sources[0].name}: {error}"
    return library


def compile_into(source: Path, library: Path) -> str:
    """Compile; '' or why not. Raises OSError and subprocess.TimeoutExpired."""
    compiler = shlex.split(os.environ.get("CC", "")) or list(filter(shutil.which, ("cc", "gcc", "clang")))[:1]
    if not compiler:
        return "there is no C compiler (cc, gcc or clang)"
    command = [*compiler, *_FLAGS, "-o", str(library), str(source), *_LIBRARIES]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    if done.returncode:
        lines = done.stderr.splitlines() or [f"exit code {done.returncode}"]
        return f"the C compiler failed: {lines[0][:300]}"
    return ""
