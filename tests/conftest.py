"""What every test may lean on: the traces, a screen that is there or is not needed, and settings of its own.

A test never touches the user's settings, caches or recordings: everything that a program finds through the
environment is led into a folder that goes away with the run.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# A machine that is busy with other work is slow, not wrong: no property fails by the clock.
settings.register_profile("inflight", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("inflight")


def pytest_configure(config: pytest.Config) -> None:
    """Set the environment before a test module is imported; each worker process does so for itself."""
    home = Path(tempfile.mkdtemp(prefix="inflight-tests-"))
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    folders = {
        "INFLIGHT_CONFIG_DIR": "settings",
        "XDG_CONFIG_HOME": "config",
        "XDG_CACHE_HOME": "cache",
        "XDG_DATA_HOME": "data",
        "XDG_STATE_HOME": "state",
    }
    screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
    if sys.platform == "linux" and not screen:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    if not os.environ.get("XDG_RUNTIME_DIR"):
        # Qt warns when it has to choose one itself, and a warning fails a test.
        folders["XDG_RUNTIME_DIR"] = "run"
    for name, folder in folders.items():
        (home / folder).mkdir(mode=0o700)
        os.environ[name] = str(home / folder)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of traces from other people's runs, which lies beside the repository, not in it."""
    folder = ROOT.parent / "shared" / "corpus"
    if not folder.is_dir():
        pytest.skip("no ../shared/corpus beside the repository: the traces of other people's runs are not here")
    return folder


@pytest.fixture(scope="session")
def sample_traces() -> Path:
    """The folder of traces that come with the repository."""
    folder = ROOT / "sample_traces"
    if not folder.is_dir():
        pytest.skip("no sample_traces folder in this checkout")
    return folder
