"""The native operator capture: built at first use against the torch that is loaded, into the user's cache folder.

Nothing is built inside an installed package, and nothing waits for the compiler: it runs beside the workload at a
low priority, and who asks is told that it is not ready yet. A failure is a reason, never an error.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import statistics
import subprocess
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path

SOURCE = Path(__file__).parent / "operators.cpp"
_LIMIT = 1 << 16
"""Records that one iteration may have; later ones of it are dropped and counted."""
_NICE = 10


def cache_folder() -> Path:
    """Where libraries are kept: $XDG_CACHE_HOME/inflight-inspector, or the same under ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "inflight-inspector"


class Build:
    """A compiler at work, or its result. `reason` says why there is no library, "" while there is hope."""

    def __init__(self, folder: Path | None = None) -> None:
        import torch

        self.reason = ""
        self._compiler: subprocess.Popen[bytes] | None = None
        installed = Path(torch.__file__).parent
        what = f"{torch.__version__} {torch.version.git_version} {platform.machine()}"
        key = hashlib.sha256(what.encode() + SOURCE.read_bytes()).hexdigest()[:16]
        self.library = (folder or cache_folder()) / f"operators-{torch.__version__}-{key}.so"
        self._unfinished = self.library.with_suffix(f".{os.getpid()}")
        self._messages = self.library.with_suffix(f".{os.getpid()}.txt")
        compiler = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), "")
        try:
            self.library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if writable_by_others(self.library.parent):
                self.reason = f"{self.library.parent} can be written by others, so nothing is loaded from it"
            elif not self.library.exists():
                if not compiler:
                    self.reason = "there is no C++ compiler (c++, g++ or clang++)"
                elif not (installed / "include" / "ATen" / "record_function.h").exists():
                    self.reason = "this torch came without its C++ headers"
                else:
                    self._compile(compiler, installed, torch.compiled_with_cxx11_abi())
        except OSError as error:
            self.reason = f"cannot build it: {error}"

    def ready(self) -> bool:
        """Whether the library is there. Does not wait; asks the compiler's process."""
        if self._compiler is None:
            return not self.reason
        code = self._compiler.poll()
        if code is None:
            return False
        self._compiler = None
        said = self._messages.read_text(encoding="utf-8", errors="replace")
        self._messages.unlink()
        if code == 0:
            self._unfinished.replace(self.library)
            return True
        self._unfinished.unlink(missing_ok=True)
        lines = [line for line in said.splitlines() if "error" in line] or said.splitlines() or [f"exit code {code}"]
        self.reason = f"the C++ compiler failed: {lines[0][:300]}"
        return False

    def close(self) -> None:
        """End a compiler that is still at work."""
        if self._compiler is not None:
            self._compiler.kill()
            self._compiler.wait()
            self._compiler = None
            self.reason = "stopped before it was built"
            self._messages.unlink()
            self._unfinished.unlink(missing_ok=True)

    def _compile(self, compiler: str, torch: Path, new_abi: bool) -> None:
        command = [
            *[compiler, "-O2", "-std=c++20", "-fPIC", "-shared", f"-D_GLIBCXX_USE_CXX11_ABI={int(new_abi)}"],
            *[f"-I{torch / 'include'}", str(SOURCE), "-o", str(self._unfinished)],
            *[f"-L{torch / 'lib'}", "-ltorch_cpu", "-lc10"],
        ]
        with self._messages.open("wb") as messages:
            self._compiler = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=messages, stderr=subprocess.STDOUT
            )
        os.setpriority(os.PRIO_PROCESS, self._compiler.pid, _NICE)


class NativeOperators:
    """The loaded library. Raises OSError when it cannot be loaded into this process."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.operators_begin.argtypes = [ctypes.c_int64]
        self._library.operators_end.restype = ctypes.c_int64
        self._library.operators_rows.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32]
        self._library.operators_rows.restype = ctypes.c_void_p
        self._library.operators_row_size.restype = ctypes.c_int64
        self._library.operators_lost.restype = ctypes.c_int64
        self._library.operators_name.argtypes = [ctypes.c_int32]
        self._library.operators_name.restype = ctypes.c_char_p
        self._row_size = int(self._library.operators_row_size())
        self._ids = array("i")
        self.record_ns: float = self._cost()
        """What one record costs the workload where it happens, measured at the start; reading it comes on top."""

    @property
    def lost(self) -> int:
        """Records of this thread dropped so far."""
        return int(self._library.operators_lost())

    def begin(self) -> None:
        """Record the operators of this thread from here on. Raises MemoryError."""
        if self._library.operators_begin(_LIMIT):
            raise MemoryError("no memory for operator records")

    def end(self) -> int:
        """Stop; how many operators there were."""
        return int(self._library.operators_end())

    def rows(self, count: int, name: Callable[[str], int], kind: int, domain: int) -> bytes:
        """The `count` operators as packed rows of "ranges", in the order in which they ended; `name` gives ids."""
        for number in range(len(self._ids), self._library.operators_names()):
            self._ids.append(name(self._library.operators_name(number).decode("utf-8", "replace")))
        ids, _ = self._ids.buffer_info()
        rows = self._library.operators_rows(ids, threading.get_native_id(), kind, domain)
        return ctypes.string_at(rows, count * self._row_size) if count else b""

    def _cost(self) -> float:
        import torch

        x = torch.zeros(1)

        def took() -> int:
            begun = time.monotonic_ns()
            for _ in range(100):
                x.add_(1)
            return time.monotonic_ns() - begun

        # By turns, and the middle one: a machine that is busy with other things must not become our cost.
        costs: list[float] = []
        for _ in range(15):
            plain = took()
            self.begin()
            watched = took()
            costs.append((watched - plain) / self.end())
        return max(0.0, statistics.median(costs))


def writable_by_others(folder: Path) -> bool:
    """Whether anyone but this user could put a library there."""
    found = folder.stat()
    return found.st_uid != os.getuid() or bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
