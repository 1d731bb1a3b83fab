"""How much memory there is for pages of the cache, and what is said when it is not enough."""

from __future__ import annotations

import resource
from pathlib import Path

from inspector import units
from inspector.errors import Missing

_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")


def available(proc: Path = _PROC, groups: Path = _GROUPS) -> int | None:
    """Bytes that the machine and the control groups of this process have left; None where nothing tells."""
    found = [*_of_groups(proc, groups)]
    machine = _kilobytes(proc / "meminfo", "MemAvailable")
    if machine is not None:
        found.append(machine)
    return min(found, default=None)


def obtainable() -> int | None:
    """Bytes that are available and that this process may still map (`ulimit -v`); None where nothing tells."""
    there = available()
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    mapped = _kilobytes(_PROC / "self" / "status", "VmSize")
    if limit == resource.RLIM_INFINITY or mapped is None:
        return there
    mappable = max(limit - mapped, 0)
    return mappable if there is None else min(there, mappable)


def check(pages: int, size: int) -> None:
    """Raise Missing when `pages` pages that take `size` bytes are more than the machine has left.

    Memory that is asked for is not taken before it is written to: what is given out freely is missed much later.
    """
    there = available()
    if there is not None and size > there:
        raise refusal(pages, size, there)


def refusal(pages: int, size: int, there: int | None) -> Missing:
    """`size` bytes for `pages` pages cannot be had; `there` are left, None unknown."""
    why = "" if there is None else f"there are {units.size(there)}"
    return Missing(f"{pages} pages of the KV cache need {units.size(size)} of memory", why, "use fewer blocks")


def _of_groups(proc: Path, groups: Path) -> list[int]:
    """What each control group (version 2) from this process's own upwards has left, where it has a limit."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    own = next((line[3:].lstrip("/") for line in lines if line.startswith("0::")), None)
    if own is None:
        return []
    left = []
    for folder in (groups / own, *(groups / own).parents):
        if not folder.is_relative_to(groups):
            break
        try:
            limit, used = ((folder / f"memory.{name}").read_text().strip() for name in ("max", "current"))
            files = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):
            continue
        if limit.isdigit() and used.isdigit():
            # What it holds of files is dropped when memory is wanted.
            left.append(max(int(limit) - int(used) + int(files.get("inactive_file", 0)), 0))
    return left


def _kilobytes(file: Path, name: str) -> int | None:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None)
