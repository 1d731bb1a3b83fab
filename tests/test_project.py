"""What holds for the project as a whole: what gets loaded, who imports whom, what the files look like."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("inspector", "ui", "probes")
HEAVY = {"PySide6", "pyqtgraph", "pandas", "torch"}


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=120)


def heavy_modules_after(code: str, *args: str | Path) -> tuple[set[str], str]:
    """Run `code` in a fresh interpreter; return which of HEAVY it loaded, and its stdout."""
    tail = f"\nimport sys; print('LOADED', *({HEAVY!r} & sys.modules.keys()), file=sys.stderr)"
    done = run(sys.executable, "-c", code + tail, *args)
    assert done.returncode == 0, done.stderr
    loaded = done.stderr.strip().splitlines()[-1].split()
    assert loaded[0] == "LOADED"
    return set(loaded[1:]), done.stdout


def any_trace() -> Path:
    for folder in (ROOT / "sample_traces", ROOT.parent / "shared" / "corpus" / "nsys"):
        traces = [path for path in folder.glob("*.sqlite") if not path.name.startswith("not_")]
        if traces:
            return min(traces, key=lambda path: path.stat().st_size)
    pytest.skip("no trace to summarise: neither sample_traces nor ../shared/corpus holds one")


def tracked_files() -> list[Path]:
    done = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if done.returncode:
        pytest.skip("not a git checkout, so nothing says which files belong to the project")
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded, _ = heavy_modules_after("import inspector")
    assert loaded == set()


def test_summary_needs_neither_qt_nor_pandas_nor_torch() -> None:
    code = (
        "import sys\n"
        "from inspector.cli import main\n"
        "try:\n"
        "    code = main(['summary', sys.argv[1], '--format', 'json'])\n"
        "except SystemExit as stop:\n"
        "    code = stop.code\n"
        "assert not code, code"
    )
    loaded, out = heavy_modules_after(code, any_trace())
    assert loaded == set()
    assert json.loads(out)["schema"] == "inflight.summary/1"


def test_command_ignores_modules_of_its_names_in_the_working_folder(tmp_path: Path) -> None:
    for package in PACKAGES:
        (tmp_path / f"{package}.py").write_text("raise SystemExit('this is the decoy')\n")
    command = Path(sys.executable).parent / "inflight"
    assert command.exists(), "the project is not installed in this environment: run packaging/test once"
    done = run(command, "--version", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+\.\d+", done.stdout)


def test_void_qt_calls_keep_their_reference_to_none(qapp: object) -> None:
    # PySide6 6.12.0 loses one reference per call that returns nothing and in the end aborts Python 3.10 and
    # 3.11. From 3.12 on None is immortal, and the count stands still.
    from PySide6.QtWidgets import QWidget

    widget = QWidget()
    before = sys.getrefcount(None)
    for _ in range(500):
        widget.update()
    # Other objects come and go meanwhile: a few references are noise, five hundred are not.
    assert sys.getrefcount(None) > before - 100


def test_import_rules_hold() -> None:
    if importlib.util.find_spec("importlinter") is None:
        pytest.skip("import-linter is not installed: pip install -e '.[lint]'")
    done = run(Path(sys.executable).parent / "lint-imports", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_is_over_400_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert long == {}


def test_no_file_names_a_folder_of_the_machine_it_was_written_on() -> None:
    # `a/work/b`, `~/work/` and `$HOME/work/` are fine, the absolute paths are not.
    local = re.compile(rb"(?<![\w.~}])/(?:root|work)/")
    home = os.path.expanduser("~").encode()
    found = []
    for path in tracked_files():
        content = path.read_bytes()
        if b"\0" in content[:8192]:
            continue  # binary
        for number, line in enumerate(content.splitlines(), 1):
            if local.search(line) or (home.count(b"/") > 1 and home + b"/" in line):
                found.append(f"{path.relative_to(ROOT)}:{number}")
    assert found == []


@pytest.mark.parametrize("package", PACKAGES)
def test_type_information_is_shipped(package: str) -> None:
    tomllib = pytest.importorskip("tomllib", reason="the standard library reads TOML from Python 3.11 on")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert (ROOT / package / "py.typed").is_file()
    assert "py.typed" in project["tool"]["setuptools"]["package-data"][package]


def test_every_file_that_a_package_needs_is_declared() -> None:
    tomllib = pytest.importorskip("tomllib", reason="the standard library reads TOML from Python 3.11 on")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = project["tool"]["setuptools"]["package-data"]
    missing = []
    for path in tracked_files():
        package, *inner = path.relative_to(ROOT).parts
        if package not in PACKAGES or path.suffix in (".py", ".md"):
            continue
        # `*.qss` means the package's own folder only, as it does to setuptools.
        patterns = [p for p in declared[package] if "**" in p or p.count("/") == len(inner) - 1]
        if not any(Path(*inner).match(pattern) for pattern in patterns):
            missing.append("/".join((package, *inner)))
    assert missing == [], "not in [tool.setuptools.package-data]: an installed copy would lack it"


def test_scripts_are_executable_and_well_formed() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash on this machine")
    for script in (ROOT / "packaging" / "run", ROOT / "packaging" / "test", ROOT / ".ci" / "run"):
        assert os.access(script, os.X_OK), script
        assert run(bash, "-n", script).stderr == ""
