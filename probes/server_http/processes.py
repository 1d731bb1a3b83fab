"""Processes of this machine as servers: at which ports they listen, who is connected there, how they were started.

All of it out of /proc, which tells of processes of other users less or nothing.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from probes.server_http.words import shown

PROC = Path("/proc")
_ESTABLISHED, _LISTENS = "01", "0A"
_MOST_BYTES = 1 << 20
_MOST_CHILDREN = 4096
# Listening at all addresses, of one kind or of both.
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "localhost"}


class Listener(NamedTuple):
    """Where a process listens: `host` is an address that reaches it from this machine."""

    host: str
    port: int


class _Socket(NamedTuple):
    host: str
    port: int
    peer: str
    peer_port: int
    state: str
    inode: str


def listeners_of(pid: int, proc: Path = PROC) -> list[Listener]:
    """Where the process listens, its children after it, ports ascending.

    Raises FileNotFoundError when it is not there, PermissionError when it is another user's.
    """
    found: dict[int, Listener] = {}
    for each in (pid, *_children(pid, proc)):
        try:
            mine = _inodes(proc / str(each) / "fd")
        except OSError:
            if each == pid:
                raise
            continue  # ended since
        here = [socket for socket in _sockets(proc / str(each)) if socket.state == _LISTENS and socket.inode in mine]
        for socket in sorted(here, key=lambda one: one.port):
            found.setdefault(socket.port, Listener(_reachable(socket.host), socket.port))
    return list(found.values())


def shares_network(pid: int, proc: Path = PROC) -> bool:
    """Whether a process is in our network, so that its ports are reached from here; True where that cannot be seen."""
    try:
        return os.readlink(proc / str(pid) / "ns" / "net") == os.readlink(proc / "self" / "ns" / "net")
    except OSError:
        return True


def pid_at(port: int, proc: Path = PROC) -> int:
    """The process that listens at `port`; -1 where it cannot be seen."""
    wanted = {socket.inode for socket in _sockets(proc / "self") if socket.state == _LISTENS and socket.port == port}
    owners = _owners(wanted, proc)
    return min(owners.values(), default=-1)


def clients_at(port: int, proc: Path = PROC) -> list[str]:
    """Who is connected to `port` of this machine, in words: processes by name, others by their address.

    Our own process, and that of the server, are left out.
    """
    sockets = list(_sockets(proc / "self"))
    serving = [socket for socket in sockets if socket.state == _ESTABLISHED and socket.port == port]
    ends = {(socket.peer, socket.peer_port) for socket in serving}
    other = [socket for socket in sockets if socket.state == _ESTABLISHED and (socket.host, socket.port) in ends]
    here = {(socket.host, socket.port): socket.inode for socket in other}
    owners = _owners(set(here.values()), proc)
    found: set[str] = set()
    for end in ends:
        pid = owners.get(here.get(end, ""), -1)
        if pid == os.getpid():
            continue
        if pid > 0:
            found.add(f"{_name(pid, proc)} ({pid})")
        else:
            found.add("a process of another user" if end in here else end[0])
    return sorted(found)


def command(pid: int, proc: Path = PROC) -> list[str]:
    """The words of the command line that a process was started with; none where it cannot be seen."""
    return _words(proc / str(pid) / "cmdline")


def environment(pid: int, proc: Path = PROC) -> dict[str, str]:
    """The environment that a process was started with; empty where it cannot be seen."""
    pairs = (word.partition("=") for word in _words(proc / str(pid) / "environ"))
    return {name: value for name, _, value in pairs}


def folder(pid: int, proc: Path = PROC) -> Path | None:
    """The folder that a process works in; None where it cannot be seen."""
    try:
        return Path(os.readlink(proc / str(pid) / "cwd"))
    except OSError:
        return None


def _words(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError:
        return []
    return [word.decode("utf-8", "surrogateescape") for word in data.split(b"\0") if word]


def _name(pid: int, proc: Path) -> str:
    try:
        return shown((proc / str(pid) / "comm").read_text(errors="replace").strip())
    except OSError:
        return "process"


def _children(pid: int, proc: Path) -> list[int]:
    """Its children and theirs, in the order in which they were started."""
    parents: dict[int, list[int]] = {}
    for each in _pids(proc):
        parent = _parent(each, proc)
        if parent > 0:
            parents.setdefault(parent, []).append(each)
    found = [pid]
    for each in found:
        found += parents.get(each, [])
        if len(found) > _MOST_CHILDREN:
            break
    return found[1:]


def _parent(pid: int, proc: Path) -> int:
    try:
        stat = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return -1
    # The name stands in brackets, and may hold any letters.
    words = stat.rpartition(")")[2].split()
    return int(words[1]) if len(words) > 1 and words[1].isascii() and words[1].isdigit() else -1


def _pids(proc: Path) -> list[int]:
    return sorted(int(name) for name in os.listdir(proc) if name.isascii() and name.isdigit())


def _owners(inodes: set[str], proc: Path) -> dict[str, int]:
    """The first process that has each of these sockets open, as far as that can be seen."""
    owners: dict[str, int] = {}
    for pid in _pids(proc) if inodes else ():
        try:
            mine = inodes & _inodes(proc / str(pid) / "fd")
        except OSError:
            continue  # another user's, or gone
        for inode in mine:
            owners.setdefault(inode, pid)
    return owners


def _inodes(path: Path) -> set[str]:
    found = set()
    for name in os.listdir(path):
        try:
            target = os.readlink(path / name)
        except OSError:
            continue  # closed since
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def _sockets(process: Path) -> Iterator[_Socket]:
    """TCP sockets in the network of a process."""
    for name in ("tcp", "tcp6"):
        try:
            lines = (process / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if len(words) <= 9:
                continue
            try:
                yield _Socket(*_place(words[1]), *_place(words[2]), words[3], words[9])
            except ValueError:
                continue  # not as the kernel writes it


def _place(text: str) -> tuple[str, int]:
    """'0100007F:1F40' as ('127.0.0.1', 8000): words of 32 bits, the least byte first."""
    host, _, port = text.partition(":")
    data = bytes.fromhex(host)
    packed = b"".join(data[at : at + 4][::-1] for at in range(0, len(data), 4))
    found = ipaddress.ip_address(packed)
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return str(found), int(port, 16)


def _reachable(host: str) -> str:
    return _ANYWHERE.get(host, host)
