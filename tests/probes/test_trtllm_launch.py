"""TensorRT-LLM's command lines with the options that statistics need, and what a program gets that stands in for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inspector.errors import Missing, Unreadable
from inspector.trace import header
from probes.workloads import command_lines, extra_options, mpi, trtllm
from probes.workloads.extra_options import Wanted

ROOT = Path(__file__).resolve().parents[2]
SERVE = {
    "enable_iter_perf_stats": True,
    "return_perf_metrics": True,
    "perf_metrics_max_requests": 10_000,
    "kv_cache_config": {"event_buffer_max_size": 65_536, "enable_block_reuse": True},
}
# Prints its arguments, and what it reads in the file that it takes its options from: the last one named.
STAND_IN = f"""#!{sys.executable}
import json, sys
words = sys.argv[1:]
files = [b for a, b in zip(words, words[1:]) if a in ("--extra_llm_api_options", "--config")]
files += [w.split("=", 1)[1] for w in words if w.startswith(("--extra_llm_api_options=", "--config="))]
print(json.dumps({{"words": words, "text": open(files[-1]).read() if files else ""}}))
sys.exit(7)
"""
OPEN_MPI = f"""#!{sys.executable}
import os, sys
if "--version" in sys.argv:
    print("mpirun (Open MPI) 4.1.4")
    sys.exit(0)
words = sys.argv[1:]
handed_on = []
while words[0].startswith("-"):
    handed_on += [words[1]] if words[0] == "-x" else []
    words = words[2:]
print("-x", *handed_on, flush=True)
os.execvp(words[0], words)
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Make programs, first on the PATH; with `fields` the arguments that the TensorRT-LLM beside them knows."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}")

    def make(fields: Iterable[str] = (), **texts: str) -> Path:
        for name, text in {"trtllm-serve": STAND_IN, "trtllm-bench": STAND_IN, **texts}.items():
            path = tmp_path / "env" / "bin" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        source = tmp_path / "env/lib/python3.12/site-packages/tensorrt_llm/llmapi/llm_args.py"
        if fields:
            source.parent.mkdir(parents=True)
            source.write_text("class Arguments:\n" + "".join(f"    {name}: int = 0\n" for name in fields))
        return tmp_path / "env" / "bin"

    return make


def prepared(folder: Path, *command: str) -> tuple[list[str], dict[str, Any] | None, list[str]]:
    """The command, the options in the file that was written, what was said."""
    found = trtllm.prepare(command, folder, os.environ)
    path = folder / trtllm.FILE
    options = yaml.safe_load(path.read_text()) if path.exists() else None
    return found.command, options, found.told


@pytest.mark.parametrize(
    ("line", "name", "at"),
    [
        ("trtllm-serve m", "serve", 0),
        ("/opt/bin/trtllm-serve serve m --port 1", "serve", 0),
        ("trtllm-bench --model m throughput --dataset d", "bench", 0),
        ("trtllm-eval --model m gsm8k", "eval", 0),
        ("python3.12 -u -X dev /opt/bin/trtllm-serve m", "serve", 4),
        ("python -W error -m tensorrt_llm.commands.serve m", "serve", 4),
        ("mpirun -n 2 --oversubscribe trtllm-llmapi-launch trtllm-serve m", "serve", 5),
        ("mpirun -n 2 python -m tensorrt_llm.commands.bench --model m latency", "bench", 5),
        ("numactl -N 0 env A=1 trtllm-serve m", "serve", 5),
        ("timeout 60 srun -n 4 trtllm-llmapi-launch trtllm-bench --model m throughput", "bench", 6),
    ],
)
def test_programs_are_found(line: str, name: str, at: int) -> None:
    found = command_lines.program(line.split())
    assert found is not None
    assert (found.name, found.at, found.end) == (name, at, len(line.split()))


@pytest.mark.parametrize(
    "line",
    [
        "python serve.py trtllm-serve",
        "grep trtllm-serve log",
        "python -c trtllm-serve",
        "python -m http.server trtllm-serve",
        "python -m tensorrt_llm.commands.build x",
        "python -m",
        "python",
        "mpirun -n 2 python serve.py trtllm-serve",
        "bash -c trtllm-serve",
        "docker run image trtllm-serve m",
        "mpirun -n 2 hostname",
        "",
    ],
)
def test_what_only_looks_like_one_is_left_alone(line: str, tmp_path: Path) -> None:
    command, options, _ = prepared(tmp_path, *line.split())
    assert command == line.split()
    assert options is None


def test_a_server_gets_all_that_statistics_need(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs()
    command, options, told = prepared(tmp_path, "trtllm-serve", "m", "--port", "9")
    assert command == ["trtllm-serve", "m", "--port", "9", "--extra_llm_api_options", str(tmp_path / trtllm.FILE)]
    assert options == SERVE
    for line, name in zip(
        told[1:], ("iter_perf_stats", "return_perf", "max_requests", "event_buffer", "block_reuse"), strict=True
    ):
        assert name in line
    assert (tmp_path / trtllm.FILE).stat().st_mode & 0o777 == 0o600


def test_a_benchmark_is_measured_as_it_was(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs()
    command, options, _ = prepared(tmp_path, "trtllm-bench", "--model", "m", "throughput", "--dataset", "d")
    assert command[-2] == "--extra_llm_api_options"
    assert options == {"enable_iter_perf_stats": True}


def test_an_evaluation_has_its_options_before_its_task(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs()
    command, options, _ = prepared(tmp_path, "trtllm-eval", "--model", "m", "gsm8k", "--num_samples", "9")
    path = str(tmp_path / trtllm.FILE)
    assert command == ["trtllm-eval", "--extra_llm_api_options", path, "--model", "m", "gsm8k", "--num_samples", "9"]
    assert options == {"enable_iter_perf_stats": True}


@pytest.mark.parametrize(
    "line",
    [
        "trtllm-serve disaggregated -c x.yaml",
        "trtllm-serve mm_embedding_serve m",
        "trtllm-bench --model m prepare-dataset",
    ],
)
def test_parts_without_such_a_file_say_so(line: str, tmp_path: Path) -> None:
    command, options, told = prepared(tmp_path, *line.split())
    assert (command, options, len(told)) == (line.split(), None, 1)


@pytest.mark.parametrize("spelled", ["--extra_llm_api_options", "--config"])
@pytest.mark.parametrize("joined", [False, True])
def test_what_the_user_set_is_kept(spelled: str, joined: bool, tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs()
    theirs = tmp_path / "theirs.yaml"
    text = (
        "# mine\nkv_cache_config: &kv {dtype: fp8, enable_block_reuse: false, event_buffer_max_size: 16}\n"
        "cuda_graph_config:\nmoe_config: {backend: TRTLLM}\nother: *kv\nlimit: 1e-3\n"
    )
    theirs.write_text(text)
    given = [f"{spelled}={theirs}"] if joined else [spelled, str(theirs)]
    command, options, told = prepared(tmp_path, "trtllm-serve", "m", *given, "--port", "9")
    path = str(tmp_path / trtllm.FILE)
    ours = [f"{spelled}={path}"] if joined else [spelled, path]
    assert command == ["trtllm-serve", "m", *ours, "--port", "9"]
    kv = {"dtype": "fp8", "enable_block_reuse": False, "event_buffer_max_size": 16}
    assert options == {
        "kv_cache_config": kv,
        "cuda_graph_config": None,
        "moe_config": {"backend": "TRTLLM"},
        "other": kv,
        "limit": "1e-3",
        **{name: value for name, value in SERVE.items() if name != "kv_cache_config"},
    }
    assert theirs.read_text() == text
    assert any("kept: kv_cache_config.enable_block_reuse: false, so no KV page events" in line for line in told)
    assert any(line.endswith("kept: kv_cache_config.event_buffer_max_size: 16") for line in told)


def test_nothing_is_written_when_nothing_is_missing(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs()
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text(yaml.safe_dump(SERVE))
    line = ["trtllm-serve", "m", "--config", str(theirs)]
    assert prepared(tmp_path, *line) == (line, None, [])


def test_the_memory_share_of_the_command_line_is_not_hidden(tmp_path: Path, programs: Callable[..., Path]) -> None:
    """In releases up to 1.2 the group in the file stands for all that the command line says of it."""
    programs()
    share = ["--kv_cache_free_gpu_memory_fraction", "0.6"]
    _, options, _ = prepared(tmp_path, "trtllm-serve", "m", *share)
    assert options is not None
    assert options["kv_cache_config"]["free_gpu_memory_fraction"] == 0.6
    (tmp_path / trtllm.FILE).unlink()
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text("kv_cache_config: {dtype: fp8}\n")
    _, options, _ = prepared(tmp_path, "trtllm-serve", "m", *share, "--config", str(theirs))
    assert options is not None
    assert "free_gpu_memory_fraction" not in options["kv_cache_config"]  # theirs hid it before us


def test_names_that_a_release_refuses_are_left_out(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs(fields=("enable_iter_perf_stats", "enable_block_reuse", "event_buffer_max_size", "return_perf_metrics"))
    _, options, told = prepared(tmp_path, "trtllm-serve", "m")
    assert options == {name: value for name, value in SERVE.items() if name != "perf_metrics_max_requests"}
    assert any("no perf_metrics_max_requests" in line for line in told)


def test_names_that_a_backend_refuses_are_left_out(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs()
    _, options, _ = prepared(tmp_path, "trtllm-serve", "m", "--backend", "tensorrt")
    assert options == {"return_perf_metrics": True, "kv_cache_config": SERVE["kv_cache_config"]}


def test_settings_of_the_command_line_win(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs()
    line = ["trtllm-serve", "m", "--set", "enable_iter_perf_stats=false", "--set=kv_cache_config={dtype: fp8}"]
    _, options, told = prepared(tmp_path, *line)
    assert options == {"return_perf_metrics": True, "perf_metrics_max_requests": 10_000}
    assert any("--set enable_iter_perf_stats=false" in line for line in told)


def test_words_that_end_the_options_stay_behind_ours(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs()
    command, _, _ = prepared(tmp_path, "trtllm-serve", "--port", "9", "--", "m")
    assert command == ["trtllm-serve", "--port", "9", "--extra_llm_api_options", str(tmp_path / trtllm.FILE), "--", "m"]
    (tmp_path / trtllm.FILE).unlink()
    command, _, _ = prepared(tmp_path, *["mpirun", "-n", "1", "trtllm-serve", "m", ":", "-n", "1", "hostname"])
    assert command[4:8] == ["m", "--extra_llm_api_options", str(tmp_path / trtllm.FILE), ":"]


@pytest.mark.parametrize("text", ["a: [", "- 1", "text", "a: !!python/object:os.system {}", "\x00"])
def test_a_file_that_cannot_be_read_is_told(text: str, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text(text)
    with pytest.raises(Unreadable, match="keep-options") as caught:
        prepared(tmp_path, "trtllm-serve", "m", "--config", str(theirs))
    assert "\n" not in str(caught.value)
    with pytest.raises(Unreadable, match="No such file"):
        prepared(tmp_path, "trtllm-serve", "m", "--config", str(tmp_path / "nowhere.yaml"))


def test_without_a_yaml_reader_a_file_of_the_user_cannot_be_added_to(
    tmp_path: Path, programs: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs()
    monkeypatch.setitem(sys.modules, "yaml", None)
    found = trtllm.prepare(["trtllm-serve", "m"], tmp_path, os.environ)
    assert found.command[-2] == "--extra_llm_api_options"
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text("a: 1")
    with pytest.raises(Missing, match="pip install PyYAML"):
        trtllm.prepare(["trtllm-serve", "m", "--config", str(theirs)], tmp_path, os.environ)
    monkeypatch.undo()
    assert yaml.safe_load((tmp_path / trtllm.FILE).read_text()) == SERVE


PLAIN = st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=8) | st.floats(allow_nan=False)
TREES = st.dictionaries(
    st.sampled_from(["a", "b", "kv", "1", "on"]),
    PLAIN | st.dictionaries(st.sampled_from(["a", "x"]), PLAIN, max_size=2) | st.lists(PLAIN, max_size=2),
    max_size=4,
)


@given(TREES, st.lists(st.sampled_from([("a",), ("kv", "a"), ("kv", "y"), ("b", "x")]), unique=True))
@settings(max_examples=150, deadline=None)
def test_what_stands_in_a_file_stands_in_the_merged_one(user: dict[str, Any], paths: list[tuple[str, ...]]) -> None:
    before = json.dumps(user)
    wanted = [Wanted(path, 5, "") for path in paths]
    merged, added, otherwise = extra_options.lay_under(user, wanted)
    assert json.dumps(user) == before

    def at(tree: Any, path: tuple[str, ...]) -> Any:
        for key in path:
            if not isinstance(tree, dict) or key not in tree:
                return "absent"
            tree = tree[key]
        return tree

    for one in wanted:
        was, group = at(user, one.path), at(user, one.path[:-1])
        if was != "absent":
            assert at(merged, one.path) == was
            assert (one in [each for each, _ in otherwise]) == (was != 5)
        elif group == "absent" or group is None or isinstance(group, dict):
            assert at(merged, one.path) == 5
            assert one in added
        else:
            assert (one, group) in otherwise
    for one in added:
        inner = merged if len(one.path) == 1 else merged[one.path[0]]
        del inner[one.path[-1]]
    # A group that was not there, or held nothing, is left over.
    grown = dict.fromkeys(key for key, value in merged.items() if value == {} and not user.get(key))
    assert {**merged, **grown} == {**user, **grown}


@given(TREES)
@example({"a": "\x85"})
@example({"model é": "\u2028"})
@settings(max_examples=100, deadline=None)
def test_what_is_written_reads_the_same(user: dict[str, Any]) -> None:
    assert yaml.safe_load(extra_options.text_of(user)) == user


PROGRAMS = st.sampled_from(["trtllm-serve", "trtllm-bench", "trtllm-eval", "python3", "mpirun", "env"])
ARGUMENTS = st.sampled_from(["m", "--", ":", "--port", "9", "throughput", "serve", "disaggregated", "--set", "a=1"])
OF_PYTHON = st.sampled_from(["-m", "-c", "-u", "-x", "tensorrt_llm.commands.serve", "--backend"])
WORDS = PROGRAMS | ARGUMENTS | OF_PYTHON


@given(st.lists(WORDS, max_size=9))
@settings(max_examples=300, deadline=None)
def test_any_command_line_is_kept_word_for_word_but_for_one_option(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = trtllm.prepare(words, Path(folder), {"PATH": ""})
        path = Path(folder) / trtllm.FILE
        assert path.exists() == bool(found.added)
        if not found.added:
            assert found.command == words
            return
    at = found.command.index(str(path))
    assert found.command[at - 1] == "--extra_llm_api_options"
    assert found.command[: at - 1] + found.command[at + 1 :] == words
    program = command_lines.program(words)
    assert program is not None
    assert program.at < at - 1 <= program.end


def test_open_mpi_is_told_what_to_hand_on(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs(mpirun=OPEN_MPI, mpiexec="#!/bin/sh\necho HYDRA build details:\n")
    environment = {**os.environ, "PYTHONPATH": f"/hook{os.pathsep}/theirs", "TLLM_INSPECTOR_RUN": "/r"}
    names = ["TLLM_INSPECTOR_RUN", "PYTHONPATH"]
    command = ["mpirun", "-x", "PYTHONPATH=/own", "-n", "2", "trtllm-serve"]
    words, told = mpi.exporting(command, names, environment)
    assert words == ["mpirun", "-x", "TLLM_INSPECTOR_RUN", "-x", "PYTHONPATH=/hook:/own", "-n", "2", "trtllm-serve"]
    assert len(told) == 2
    for line in ("mpiexec -n 2 a", "echo mpirun a", "nowhere/mpirun a", "a"):
        assert mpi.exporting(line.split(), names, environment) == (line.split(), [])
    assert mpi.exporting(["timeout", "9", "mpirun", "a"], names[:1], environment)[0] == [
        *("timeout", "9", "mpirun", "-x", "TLLM_INSPECTOR_RUN", "a")
    ]


def recorded(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    command = [sys.executable, "-m", "inspector", "record", "--headless", "--out", str(folder), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    return done, json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}


def test_a_launch_as_a_user_sees_it(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs(mpirun=OPEN_MPI)
    folder = tmp_path / "a.inflight"
    done, given = recorded(folder, "--", "mpirun", "-n", "1", "trtllm-serve", "m")
    assert done.returncode == 7, done.stderr
    assert given["words"] == ["m", "--extra_llm_api_options", str(folder / trtllm.FILE)]
    assert yaml.safe_load(given["text"]) == SERVE
    assert "enable_iter_perf_stats: true" in done.stderr
    assert "TLLM_INSPECTOR_RUN" in done.stdout.splitlines()[0]
    head = header.read(folder)
    assert head.command[-3:] == given["words"]
    assert head.command[:2] == ["mpirun", "-x"]
    assert head.probes["TensorRT-LLM options"]["kv_cache_config.event_buffer_max_size"] == "65536"
    assert head.state == "complete"


def test_what_a_command_says_of_itself_does_not_steer_the_terminal(
    tmp_path: Path, programs: Callable[..., Path]
) -> None:
    programs()
    odd = "enable_iter_perf_stats=\x1b]0;owned\x07\ninflight: all is well"
    done, _ = recorded(tmp_path / "a.inflight", "--", "trtllm-serve", "m", "--set", odd)
    assert "\\x1b]0;owned\\x07 inflight: all is well" in done.stderr
    assert "\x1b" not in done.stderr
    assert "\x07" not in done.stderr
    assert "inflight: all is well" not in done.stderr.splitlines()


def test_a_command_can_be_left_as_it_is(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs()
    done, given = recorded(tmp_path / "a.inflight", "--keep-options", "--", "trtllm-serve", "m")
    assert (done.returncode, given["words"]) == (7, ["m"])
    assert header.read(tmp_path / "a.inflight").command == ["trtllm-serve", "m"]


def test_a_wrong_file_is_told_before_anything_runs(tmp_path: Path, programs: Callable[..., Path]) -> None:
    programs()
    (tmp_path / "theirs.yaml").write_text("a: [")
    done, _ = recorded(tmp_path / "a.inflight", "--", "trtllm-serve", "m", "--config", str(tmp_path / "theirs.yaml"))
    assert (done.returncode, done.stdout) == (3, "")
    assert not (tmp_path / "a.inflight").exists()
