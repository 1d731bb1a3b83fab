"""What this machine allows, on machines that are folders: their /proc, their programs, what those say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from inspector.cli import main
from probes import doctor
from probes.doctor import gpu, nvml, records, system
from probes.doctor.check import Check, Machine, run

DRIVER = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (builder)\nGCC version: 12\n"
STATUS = "Name:\tcat\nCapEff:\t{:016x}\n"
H200 = nvml.Said(gpus=("NVIDIA H200",))
Make = Callable[..., Machine]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A machine of these files, with these programs on its PATH, environment variables, and answers of programs."""

    def machine(
        files: dict[str, str] | None = None,
        programs: Sequence[str] = (),
        answers: dict[str, str] | None = None,
        administrator: bool = False,
        **environment: str,
    ) -> Machine:
        root = tmp_path / "root"
        for name, text in {"bin/": "", "proc/self/status": STATUS.format(0), **(files or {})}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("/"):
                path.mkdir(exist_ok=True)
            else:
                path.write_text(text)
        for name in programs:
            (root / "bin" / name).write_text("")
            (root / "bin" / name).chmod(0o755)

        def answer(command: Sequence[str]) -> str | None:
            return (answers or {}).get(Path(command[0]).name)

        return Machine(root, {"PATH": str(root / "bin"), **environment}, administrator, answer)

    return machine


def capabilities(*bits: int) -> dict[str, str]:
    return {"proc/self/status": STATUS.format(sum(1 << bit for bit in bits))}


def drivers(version: str = "570.86.15") -> dict[str, str]:
    return {"proc/driver/nvidia/version": DRIVER.format(version)}


@pytest.mark.parametrize(
    ("files", "state", "word"),
    [
        (drivers(), "yes", "version 570.86.15"),
        (drivers("470.57.02"), "partly", "older than CUDA 12"),
        ({"proc/version": "Linux 5.15 Microsoft WSL2", "dev/dxg": ""}, "yes", "Windows"),
        ({"dev/nvidiactl": ""}, "partly", "no driver in /proc"),
        ({".dockerenv": ""}, "no", "--gpus all"),
        ({}, "no", "no GPU driver"),
    ],
)
def test_driver(make: Make, files: dict[str, str], state: str, word: str) -> None:
    said = gpu.driver(make(files))
    assert said.state == state
    assert word in said.why + said.fix


LOCKED = {**drivers(), "proc/driver/nvidia/params": 'RmMsg: ""\nRmProfilingAdminOnly: 1\n'}


@pytest.mark.parametrize(
    ("files", "administrator", "state", "fix"),
    [
        (LOCKED, False, "partly", "NVreg_RestrictProfilingToAdminUsers=0"),
        ({**LOCKED, "run/.containerenv": ""}, False, "partly", "--cap-add=SYS_ADMIN; or"),
        ({**LOCKED, **capabilities(38)}, False, "yes", ""),
        ({**LOCKED, **capabilities(21)}, False, "yes", ""),
        (LOCKED, True, "yes", ""),
        ({**LOCKED, "proc/driver/nvidia/params": "RmProfilingAdminOnly: 0\n"}, False, "yes", ""),
        ({**LOCKED, "proc/driver/nvidia/params": "RmProfilingAdminOnly: 10\n"}, False, "yes", ""),
        ({}, False, "no", ""),
    ],
)
def test_permission_for_counters(make: Make, files: dict[str, str], administrator: bool, state: str, fix: str) -> None:
    said = gpu.counters(make(files, administrator=administrator))
    assert said.state == state
    assert fix in said.fix
    assert (state == "partly") == bool(said.still)


@pytest.mark.parametrize(
    ("files", "state", "why", "fix"),
    [
        ({}, "no", "no NVIDIA driver", ""),
        (LOCKED, "no", "administrators", "NVreg_RestrictProfilingToAdminUsers=0"),
        ({"proc/driver/nvidia/capabilities/gpu0/mig/gi1/access": ""}, "no", "MIG", "nvidia-smi -mig 0"),
        ({"proc/version": "Linux 5.15 microsoft-standard-WSL2", **LOCKED}, "no", "WSL", "on Linux itself"),
        ({"proc/driver/nvidia/params": "RmProfilingAdminOnly: 0\n"}, "yes", "locks the clocks", ""),
    ],
)
def test_pm_sampling(make: Make, files: dict[str, str], state: str, why: str, fix: str) -> None:
    said = gpu.pm_sampling(make({**drivers(), **files} if files else {}, administrator=False))
    assert said.state == state
    assert why in said.why
    assert fix in said.fix


def test_slices_of_gpus(make: Make) -> None:
    assert gpu.mig(make()).state == "no"
    assert gpu.mig(make(drivers())).state == "yes"
    slices = {f"proc/driver/nvidia/capabilities/gpu0/mig/gi{number}/access": "" for number in (1, 2)}
    said = gpu.mig(make(slices))
    assert (said.state, "2 GPU instances" in said.why) == ("partly", True)


@pytest.mark.parametrize(
    ("model", "state"),
    [
        ("NVIDIA H200", "yes"),
        ("NVIDIA A100-SXM4-40GB", "yes"),
        ("NVIDIA A100-40C", "partly"),
        ("GRID V100D-8Q", "partly"),
        ("NVIDIA RTX A5000", "yes"),
    ],
)
def test_virtual_gpus(make: Make, model: str, state: str) -> None:
    information = {"proc/driver/nvidia/gpus/0000:0a:00.0/information": f"Model: \t\t {model}\nIRQ: 5\n"}
    assert gpu.vgpu(make(information)).state == state


def test_shared_gpus(make: Make) -> None:
    assert gpu.mps(make()).state == "yes"
    assert gpu.mps(make(CUDA_MPS_PIPE_DIRECTORY="/x")).state == "partly"
    assert gpu.mps(make({"tmp/nvidia-mps/control": ""})).state == "partly"


def test_wsl_is_not_told_to_ask_for_permission(make: Make) -> None:
    said = gpu.wsl(make({"proc/version": "Linux version 5.15.90.1-microsoft-standard-WSL2"}))
    assert said.state == "partly"
    assert "NVreg" not in said.fix
    assert gpu.wsl(make({"proc/version": "Linux version 6.1"})).state == "yes"


@pytest.mark.parametrize(
    ("files", "state", "why", "fix"),
    [
        ({}, "yes", "none", ""),
        ({".dockerenv": ""}, "partly", "Docker, without SYS_ADMIN, SYS_PTRACE", "--cap-add=SYS_PTRACE"),
        ({".dockerenv": "", **capabilities(19, 21)}, "yes", "Docker", ""),
        ({"proc/1/cgroup": "0::/kubepods/pod1\n", **capabilities(21)}, "partly", "Kubernetes", "add: SYS_PTRACE"),
        ({"proc/1/cgroup": "3:cpu:/docker/ab\n"}, "partly", "Docker", ""),
        ({"proc/version": "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"}, "partly", "gVisor", ""),
    ],
)
def test_containers(make: Make, files: dict[str, str], state: str, why: str, fix: str) -> None:
    said = system.container(make(files))
    assert said.state == state
    assert why in said.why
    assert fix in said.fix


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({}, "yes"),
        ({"proc/sys/kernel/yama/ptrace_scope": "0\n"}, "yes"),
        ({"proc/sys/kernel/yama/ptrace_scope": "1\n"}, "partly"),
        ({"proc/sys/kernel/yama/ptrace_scope": "1\n", **capabilities(19)}, "yes"),
        ({"proc/sys/kernel/yama/ptrace_scope": "3\n"}, "no"),
    ],
)
def test_looking_into_processes(make: Make, files: dict[str, str], state: str) -> None:
    assert system.attach(make(files)).state == state


def test_the_kernel_tap_needs_a_driver_and_a_compiler(make: Make) -> None:
    assert records.kernel_tap(make(programs=("cc",))).why == "no NVIDIA driver"
    machine = make(drivers())
    (machine.root / "bin" / "cc").unlink()
    assert "C compiler" in records.kernel_tap(machine).why
    assert records.kernel_tap(make(programs=("clang",))).state == "yes"


def test_libcupti_of_the_right_age(make: Make) -> None:
    assert records.cupti(make()).state == "partly"
    old = "usr/local/cuda-11.8/extras/CUPTI/lib64/libcupti.so."
    said = records.cupti(make({old + "11.8": "", old + "2022.3.0": ""}))
    assert (said.state, "version 11" in said.why) == ("no", True)
    package = "usr/local/lib/python3.12/dist-packages/nvidia/cuda_cupti/lib/libcupti.so.12"
    said = records.cupti(make({package: ""}))
    assert (said.state, said.why.startswith("version 12")) == ("yes", True)
    environment = make().root / "venv"
    own = environment / "lib/python3.11/site-packages/nvidia/cu13/lib/libcupti.so.13"
    own.parent.mkdir(parents=True)
    own.touch()
    assert records.cupti(make(VIRTUAL_ENV=str(environment))).why.startswith("version 13")


@pytest.mark.parametrize(
    ("environment", "state", "why", "fix"),
    [
        ({}, "yes", "none", ""),
        ({"CUDA_INJECTION64_PATH": "/opt/x.so"}, "partly", "/opt/x.so", "unset CUDA_INJECTION64_PATH"),
        ({"NSYS_TARGET_STD_REDIRECT_ACTIVE": "1"}, "partly", "NSYS_TARGET", "not inside nsys"),
        ({"NVTX_INJECTION64_PATH": "x", "NSYS_A": "1"}, "partly", "NSYS_A, NVTX", "unset NSYS_A NVTX"),
    ],
)
def test_other_profilers(make: Make, environment: dict[str, str], state: str, why: str, fix: str) -> None:
    said = records.rivals(make(**environment))
    assert said.state == state
    assert why in said.why
    assert fix in said.fix


def test_nsys_and_its_version(make: Make) -> None:
    assert records.nsys(make()).state == "no"
    said = records.nsys(make({"opt/nvidia/nsight-systems/2025.3.1/bin/nsys": ""}))
    assert said.state == "partly"
    assert said.fix.endswith("opt/nvidia/nsight-systems/2025.3.1/bin:$PATH")
    assert records.nsys(make(programs=("nsys",))).state == "partly"
    answer = {"nsys": "NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0\n"}
    said = records.nsys(make(programs=("nsys",), answers=answer))
    assert (said.state, "version 2025.3.1.90;" in said.why) == ("yes", True)


def test_room_for_rings(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = {"now": 10 << 30}
    usage = type("Usage", (), {"free": property(lambda self: free["now"])})
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage())
    states = []
    for free["now"] in (10 << 30, 200 << 20, 20 << 20):
        states.append(records.room(make(), tmp_path).state)
    assert states == ["yes", "partly", "no"]
    monkeypatch.undo()
    assert records.room(make(), tmp_path / "nowhere").state == "no"


def test_tensorrt_llm_by_its_program(make: Make) -> None:
    assert system.tensorrt_llm(make()).state == "no"
    assert system.tensorrt_llm(make(programs=("trtllm-serve",))).state == "yes"
    source = "lib/python3.12/site-packages/tensorrt_llm/llmapi/llm_args.py"
    old = make({source: "class Arguments:\n    enable_block_reuse: bool = True\n"})
    assert system.tensorrt_llm(old).state == "partly"
    new = make({source: "class A:\n    enable_block_reuse: bool = True\n    enable_iter_perf_stats: bool = False\n"})
    assert system.tensorrt_llm(new).state == "yes"


def test_what_nvml_says() -> None:
    def states(said: nvml.Said) -> list[str]:
        return [check(said).state for check in (nvml.nvml, nvml.gpm, nvml.confidential)]

    assert states(H200) == ["yes", "yes", "yes"]
    assert states(nvml.Said(absent="no driver", fix="install it")) == ["no", "no", "yes"]
    assert states(nvml.Said()) == ["no", "no", "yes"]
    assert states(nvml.Said(gpus=("A", "B"), without_gpm=(("A", "too old"),))) == ["yes", "partly", "yes"]
    assert states(nvml.Said(gpus=("A",), without_gpm=(("A", "Insufficient Permissions"),))) == ["yes", "no", "yes"]
    assert "sudo" in nvml.gpm(nvml.Said(gpus=("A",), without_gpm=(("A", "Insufficient Permissions"),))).fix
    assert states(nvml.Said(gpus=("A",), confidential=True)) == ["yes", "yes", "no"]


def test_nvml_that_hangs_or_breaks_is_told(make: Make) -> None:
    said = nvml.ask(make())
    assert said.absent == "NVML does not answer"
    assert run(["false"]) is None
    assert run(["no-such-program"]) is None
    assert run(["echo", "a"]) == "a\n"


def test_nvml_is_asked_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: the stand-in for NVML cannot be built")
    source = Path(__file__).with_name("nvml_stand_in.c")
    command = [compiler, "-shared", "-fPIC", "-o", str(tmp_path / "libnvidia-ml.so.1"), str(source)]
    subprocess.run(command, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    said = nvml.ask(Machine())
    assert said == nvml.Said(gpus=("Stand-in A", "Stand-in B"))
    monkeypatch.setenv("STAND_IN_GPM", "refused")
    said = nvml.ask(Machine())
    assert [name for name, _ in said.without_gpm] == ["Stand-in A", "Stand-in B"]
    monkeypatch.setenv("STAND_IN_INIT", "refused")
    assert "does not start" in nvml.ask(Machine()).absent


def test_every_refusal_has_a_reason_and_there_is_a_fix_or_what_works_without(make: Make) -> None:
    bare = doctor.checks(make(administrator=False))
    assert len({check.what for check in bare}) == len(bare)
    for check in bare:
        assert check.why
        if check.state == "no":
            assert check.fix or check.still or "no NVIDIA driver" in check.why, check


def test_an_h200_with_all_it_needs(make: Make) -> None:
    files = {**drivers(), "proc/driver/nvidia/params": "RmProfilingAdminOnly: 0\n"}
    answer = {"absent": "", "fix": "", "gpus": ["NVIDIA H200"], "without_gpm": [], "confidential": False}
    answers = {Path(sys.executable).name: json.dumps(answer), "nsys": "version 2025.3.1"}
    machine = make(files, ("nsys", "cc", "trtllm-serve"), answers, DISPLAY=":0")
    # What is seen by other ways than through the machine, or is tested beside this.
    elsewhere = (
        "libcupti of CUDA 12 or later",
        "room for recordings in this folder",
        "DCGM: DRAM activity at 10 Hz (record --probe +dcgm)",
    )
    assert [check for check in doctor.checks(machine) if check.state != "yes" and check.what not in elsewhere] == []


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        Check("a GPU", "no", "there is none", "buy one", "the demo"),
        Check("a screen", "yes", "there is one"),
    ]
    monkeypatch.setattr(doctor, "checks", lambda: found)
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].split() == ["a", "GPU", "missing", "there", "is", "none"]
    assert "a GPU: buy one" in text
    assert "a GPU: the demo" in text
    assert main(["doctor", "--format", "json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["schema"] == "inflight.doctor/1"
    assert told["checks"][0] == {
        "what": "a GPU",
        "state": "no",
        "why": "there is none",
        "fix": "buy one",
        "still": "the demo",
    }


def test_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--format", "json"]) == 0
    told = {check["what"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    has_driver = os.path.exists("/proc/driver/nvidia/version")
    assert (told["NVIDIA driver"]["state"] != "no") == (has_driver or os.path.exists("/dev/nvidiactl"))
