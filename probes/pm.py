"""PM sampling as the recorder has it: a process of its own, so that what goes wrong in it goes wrong there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from probes.inprocess.pm import INTERVAL_NS, built
from probes.inprocess.producer import ENVIRONMENT

_PATIENCE_S = 5.0


class Sampler:
    """Samples every GPU that a workload with that environment sees, into rings in `folder`, until it is closed.

    `state` is for the recording's header. It ends with this process, whatever becomes of that.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        library = built()
        if isinstance(library, str):
            self.state = {"absent": library}
            return
        self.state = {"every": f"{INTERVAL_NS / 1e6:g} ms", "clocks": "locked meanwhile"}
        command = [sys.executable, "-I", "-m", "probes.inprocess.pm", str(library), str(INTERVAL_NS)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**environment, ENVIRONMENT: str(folder)},
                start_new_session=True,
            )
        except OSError as error:
            self.state = {"absent": error.strerror or str(error)}

    def close(self) -> None:
        """Have it write what it has; one that hangs in a call is ended."""
        process = self._process
        if process is None or process.stdin is None:
            return
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
