"""The native libraries: in the wheel where it was made with a compiler, else compiled once into the user's cache."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from probes.inprocess import building, pm, tap
from tests.waiting import ROOT

TELL = """
import ctypes
from probes.inprocess import pm, tap
for library in (tap.build(), pm.built()):
    print(library)
    if not isinstance(library, str):
        ctypes.CDLL(str(library))
"""


def make_wheel(folder: Path, path: str, **more: str) -> Path:
    """A wheel of this source, made with the programs on `path`, and unpacked as an installer does it."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed: no wheel is made")
    source = folder / "source"
    skipped = shutil.ignore_patterns("__pycache__", "weights")
    for name in ("inspector", "ui", "probes"):
        shutil.copytree(ROOT / name, source / name, ignore=skipped)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    make = "import setuptools.build_meta, sys; print(setuptools.build_meta.build_wheel(sys.argv[1]))"
    env = {**{name: value for name, value in os.environ.items() if name != "CC"}, "PATH": path, **more}
    done = subprocess.run(
        [sys.executable, "-c", make, str(folder)], cwd=source, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return wheel


def tell(folder: Path, path: str) -> list[str]:
    """What an installation there says of its libraries."""
    env = {**os.environ, "PATH": path, "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(folder / "site")}
    env.pop("CC", None)
    done = subprocess.run([sys.executable, "-c", TELL], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="no C compiler on Linux")
def test_a_wheel_made_with_a_compiler_needs_none(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, os.environ["PATH"])
    assert wheel.name.endswith(f"-py3-none-linux_{os.uname().machine}.whl")
    place = tmp_path / "site" / "probes" / "inprocess" / "built"
    names = [building.name_of(sources) for sources in (tap.SOURCES, pm.SOURCES)]
    assert tell(tmp_path, "") == [str(place / name) for name in names]
    assert not (tmp_path / "cache").exists()
    # One that cannot be loaded here is compiled anew, or there is none.
    (place / names[0]).write_bytes(b"made for another machine")
    assert tell(tmp_path, "")[0] == "there is no C compiler (cc, gcc or clang)"
    assert tell(tmp_path, os.environ["PATH"])[0] == str(tmp_path / "cache" / "inflight-inspector" / names[0])


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="no C compiler on Linux")
def test_a_wheel_for_another_machine_holds_its_libraries_under_their_names_there(tmp_path: Path) -> None:
    # A compiler with words of its own stands for one that makes code for that machine.
    more = {"INFLIGHT_PLATFORM": "manylinux2014_otherkind", "CC": "cc -DFOR_ANOTHER"}
    wheel = make_wheel(tmp_path, os.environ["PATH"], **more)
    assert wheel.name.endswith("-py3-none-manylinux2014_otherkind.whl")
    found = {path.name for path in (tmp_path / "site" / "probes" / "inprocess" / "built").iterdir()}
    assert found == {building.name_of(sources, "otherkind") for sources in (tap.SOURCES, pm.SOURCES)}
    # Here they are not taken.
    assert tell(tmp_path, "") == ["there is no C compiler (cc, gcc or clang)"] * 2


def test_a_wheel_made_without_a_compiler_is_for_any_machine_and_compiles_when_it_is_needed(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert tell(tmp_path, "") == ["there is no C compiler (cc, gcc or clang)"] * 2
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: nothing is compiled")
    cache = tmp_path / "cache" / "inflight-inspector"
    names = [building.name_of(sources) for sources in (tap.SOURCES, pm.SOURCES)]
    assert tell(tmp_path, os.environ["PATH"]) == [str(cache / name) for name in names]
    # From then on without it.
    assert tell(tmp_path, "") == [str(cache / name) for name in names]


def test_a_changed_header_is_another_library(tmp_path: Path) -> None:
    sources = [Path(shutil.copy(path, tmp_path)) for path in tap.SOURCES]
    before = building.name_of(sources)
    sources[-1].write_text(sources[-1].read_text() + "\n/* changed */\n")
    assert building.name_of(sources) != before
    # What a source includes of ours is among its sources.
    for group in (tap.SOURCES, pm.SOURCES):
        names = {path.name for path in group}
        for path in group:
            included = [line.split('"')[1] for line in path.read_text().splitlines() if line.startswith('#include "')]
            assert set(included) <= names
