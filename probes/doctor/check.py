"""What a check says, and the machine as the checks see it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

State = Literal["yes", "partly", "no"]
_PATIENCE_S = 15.0
_MOST_BYTES = 1 << 20
_CAPABILITIES = {"SYS_PTRACE": 19, "SYS_ADMIN": 21, "PERFMON": 38}


@dataclass(frozen=True)
class Check:
    """One means: whether it works here, why (not), what to do to get it, and what works all the same without."""

    what: str
    state: State
    why: str
    fix: str = ""
    still: str = ""


def run(command: Sequence[str]) -> str | None:
    """What a program says; None where it cannot be run, fails or hangs."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


@dataclass(frozen=True)
class Machine:
    """Where the checks look: files under `root`, the environment, programs on its PATH, and what those say."""

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    is_administrator: bool = os.geteuid() == 0 if sys.platform != "win32" else False
    run: Callable[[Sequence[str]], str | None] = run

    def text(self, path: str) -> str:
        """Beginning of a file; '' where there is none that can be read."""
        try:
            with (self.root / path).open("rb") as file:
                return file.read(_MOST_BYTES).decode(errors="replace")
        except OSError:
            return ""

    def has(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        try:
            return (self.root / path).exists()
        except OSError:
            return False

    def some(self, pattern: str) -> list[Path]:
        """Files and folders that a pattern fits, sorted."""
        return sorted(self.root.glob(pattern))

    def program(self, name: str) -> str | None:
        """Where a program is on the PATH."""
        return shutil.which(name, path=self.environment.get("PATH", os.defpath))

    def may(self, capability: str) -> bool:
        """Whether this process has a capability of Linux, by its name without CAP_."""
        for line in self.text("proc/self/status").splitlines():
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> _CAPABILITIES[capability] & 1)
        return self.is_administrator

    @property
    def is_wsl(self) -> bool:
        """Whether this is Windows' own Linux."""
        return "microsoft" in self.text("proc/version").lower()

    @property
    def container(self) -> str:
        """What kind of container this is; '' for none that can be seen."""
        if self.has(".dockerenv"):
            return "Docker"
        if self.has("run/.containerenv"):
            return "Podman"
        groups = self.text("proc/1/cgroup")
        known = (("kubepods", "Kubernetes"), ("docker", "Docker"), ("containerd", "containerd"), ("lxc", "LXC"))
        return next((kind for word, kind in known if word in groups), "")

    @property
    def driver(self) -> str:
        """Version of NVIDIA's driver; '' where none is loaded."""
        for line in self.text("proc/driver/nvidia/version").splitlines()[:1]:
            for word in line.split():
                if word[:1].isdigit() and "." in word:
                    return word
            return "unknown"
        return ""
