"""At which ports a process of this machine listens, and which process listens at a port, out of /proc."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")
_LISTENS = "0A"


def ports_of(pid: int, proc: Path = PROC) -> list[int]:
    """TCP ports at which the process listens, ascending. Raises OSError when it is not there, or is another user's."""
    mine = _sockets(proc / str(pid) / "fd")
    return sorted({port for inode, port in _listening(proc / str(pid)) if inode in mine})


def pid_at(port: int, proc: Path = PROC) -> int:
    """The process that listens at `port`; -1 where it cannot be seen."""
    wanted = {inode for inode, found in _listening(proc / "self") if found == port}
    if not wanted:
        return -1
    for folder in sorted(proc.iterdir()):
        if not folder.name.isdigit():
            continue
        try:
            if wanted & _sockets(folder / "fd"):
                return int(folder.name)
        except OSError:
            continue  # another user's, or gone
    return -1


def _sockets(folder: Path) -> set[str]:
    found = set()
    for name in os.listdir(folder):
        try:
            target = os.readlink(folder / name)
        except OSError:
            continue  # closed since
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def _listening(process: Path) -> list[tuple[str, int]]:
    """(inode, port) of what listens in the network of a process."""
    found = []
    for name in ("tcp", "tcp6"):
        try:
            lines = (process / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if len(words) > 9 and words[3] == _LISTENS:
                found.append((words[9], int(words[1].rpartition(":")[2], 16)))
    return found
