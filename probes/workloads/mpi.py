"""mpirun as the launcher of a workload: what it has to be told for the probes to reach the other nodes.

Processes that it starts on this machine inherit the environment by themselves.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from shutil import which

from probes.workloads.command_lines import LAUNCHERS, MPI

_PATIENCE_S = 10
_PYTHONPATH = "PYTHONPATH="


def exporting(
    command: Sequence[str], names: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """`command` with `-x NAME` for each of the variables where it is Open MPI's mpirun; and what to say, a line each.

    Other MPIs hand on the whole environment. A PYTHONPATH that the user exports gets ours in front.
    """
    words = list(command)
    place = next((at for at, word in enumerate(words) if PurePath(word).name in MPI), None)
    # Behind anything but a launcher it is an argument like others.
    if place is None or (place and PurePath(words[0]).name not in LAUNCHERS):
        return words, []
    program = which(words[place], path=environment.get("PATH"))
    if program is None or not _is_open_mpi(program, environment):
        return words, []
    told: list[str] = []
    given = {after.split("=", 1)[0] for word, after in pairwise(words) if word == "-x"}
    for at in range(place + 1, len(words) - 1):
        if words[at] == "-x" and words[at + 1].startswith(_PYTHONPATH):
            theirs = words[at + 1].removeprefix(_PYTHONPATH)
            ours = environment["PYTHONPATH"].split(os.pathsep)[0]
            words[at + 1] = _PYTHONPATH + os.pathsep.join([ours, *([theirs] if theirs else [])])
            told.append("mpirun: the PYTHONPATH that you export gets the folder of the probes in front")
    added = [name for name in names if name not in given]
    exported = [word for name in added for word in ("-x", name)]
    if added:
        told.append(f"mpirun hands on what the probes need: {' '.join(f'-x {name}' for name in added)}")
    return [*words[: place + 1], *exported, *words[place + 1 :]], told


def _is_open_mpi(program: str, environment: Mapping[str, str]) -> bool:
    try:
        said = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            env=dict(environment),
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    return any(name in said for name in ("Open MPI", "OpenRTE", "PRRTE"))
