"""Waits until a module is imported, then lets its probe in; a name lookup per import until then, nothing afterwards.

What is watched stands in WATCHED. A probe is imported when its module is there, and what goes wrong in it is a note in
the recording, never an error of the workload.
"""

from __future__ import annotations

import importlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # Every Python of the workload pays for what is imported here.
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

WATCHED: dict[str, str] = {
    "torch": "torch_guest",
    "tensorrt_llm._torch.pyexecutor.py_executor": "trtllm",
}
"""The module that is waited for, and the module beside this one whose `attach(module)` is called then."""
WITHOUT = "TLLM_INSPECTOR_WITHOUT"
"""Names the probes (as in WATCHED, between commas) that are to stay off."""
OFF = ".off"
"""How a file is called that says why a probe is off, where not even a ring could be made to say so."""
OLDEST = (3, 9)
"""The first Python that the probes run in."""
_NOTE_BYTES = 1 << 16
# Frames of it are left out of tracebacks by Python itself, and are passed over by warnings.
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


class Watch:
    """Stands first in sys.meta_path, and gives way as soon as nothing is waited for."""

    def __init__(self, waiting: dict[str, str]) -> None:
        self._waiting = dict(waiting)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the others find, with a loader that calls the probe afterwards; None for any other module."""
        if name not in self._waiting:
            return None
        probe = self._waiting.pop(name)
        if not self._waiting and self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                # One of the oldest kind is not made for it, and does all of its work in one call.
                if hasattr(spec.loader, "exec_module") and hasattr(spec.loader, "create_module"):
                    spec.loader = _Loader(spec.loader, probe)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """The module's own loader, with the probe behind it."""

    def __init__(self, loader: Any, probe: str) -> None:
        self._loader, self._probe = loader, probe

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader does it."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """The module first; errors of its own pass through."""
        # From here on nobody needs to know that another loader was in between.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        let_in(self._probe, module)


def _hide(*functions: Any) -> None:
    """Make their frames those of the import system: an error of a user's module looks as if nobody were in between."""
    for function in functions:
        if hasattr(function.__code__, "replace"):
            function.__code__ = function.__code__.replace(co_filename=_IMPORT_SYSTEM)


_hide(Watch.find_spec, _Loader.create_module, _Loader.exec_module)


def let_in(probe: str, module: ModuleType) -> None:
    """Call a probe's `attach` on its module; in a process that is only prepared, when it is asked for."""
    try:
        if tuple(sys.version_info) < OLDEST:
            raise RuntimeError("Python {}.{} is too old: the probes need {}.{}".format(*sys.version_info[:2], *OLDEST))
        if os.environ.get("TLLM_INSPECTOR_STANDBY"):
            importlib.import_module(f"{__package__}.standby").keep(probe, module)
        else:
            importlib.import_module(f"{__package__}.{probe}").attach(module)
    except Exception as error:
        import logging

        logging.getLogger(__name__).debug("probe %s stays off", probe, exc_info=True)
        tell(probe, error)


def arm() -> None:
    """Begin to wait, once per process; what is imported already gets its probe now."""
    if any(isinstance(finder, Watch) for finder in sys.meta_path):
        return
    off = os.environ.get(WITHOUT, "").split(",")
    wanted = {name: probe for name, probe in WATCHED.items() if probe not in off}
    there = {name: probe for name, probe in wanted.items() if name in sys.modules}
    rest = {name: probe for name, probe in wanted.items() if name not in there}
    if rest:
        sys.meta_path.insert(0, Watch(rest))
    for name, probe in there.items():
        let_in(probe, sys.modules[name])


def tell(probe: str, error: Exception) -> None:
    """Leave a note in the recording that a probe is off, and why. Raises nothing."""
    import logging

    why = f"{type(error).__name__}: {error}"
    try:
        from .producer import from_environment

        producer = from_environment(probe, _NOTE_BYTES)
        if producer is not None:
            producer.status("failed", f"{probe}: {why}")
            producer.close()
    except Exception:
        logging.getLogger(__name__).debug("no note of it by a ring", exc_info=True)
        _leave(probe, why)


def _leave(probe: str, why: str) -> None:
    """The note as a file of its own: what makes rings does not run here."""
    folder = os.environ.get("TLLM_INSPECTOR_RUN")
    if not folder:
        return
    try:
        path = os.path.join(folder, f"{probe}-{os.getpid()}{OFF}")
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, why.encode("utf-8", "replace"))
        finally:
            os.close(file)
    except OSError:
        return
