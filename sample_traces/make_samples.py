"""Write the sample traces, each beside its truth: `python -m sample_traces.make_samples [--out FOLDER] [NAME ...]`.

`--kernels N` writes one big decode server of about N kernels instead, for benchmarks.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sample_traces import kineto_writer, nsys_writer, runs
from sample_traces.catalogue import generation_step
from sample_traces.host import Run
from sample_traces.metrics import sample
from sample_traces.nsys_schema import FAMILIES
from sample_traces.nsys_target import SENTENCE, Shape
from sample_traces.truth import DeviceTruth, as_json, truth_of


@dataclass(frozen=True)
class Sample:
    """A trace file to write: `name` without suffix, the GPUs that it shows, and how it came about.

    Without a `shape` it is written as Kineto JSON. `gpus` gives the number by which the file knows each GPU.
    """

    name: str
    run: Run
    shape: Shape | None
    gpus: Mapping[int, int]
    text: str


def _decode_server() -> list[Sample]:
    run = runs.decode_server()
    shape = Shape("3.24.14", samples=sample(run.devices[0]))
    text = "One server on one GPU, node-level CUDA graphs, GPU metrics at 10 kHz. Open this one first."
    return [Sample("decode_server", run, shape, {0: 0}, text)]


def _decode_graph_level() -> list[Sample]:
    run = runs.decode_server(iterations=120, layers=6, spelling=2, seed=3)
    text = "A server like decode_server, recorded with graph granularity: kernels inside graphs are not in the file."
    return [Sample("decode_graph_level", run, Shape("3.25.0", whole_graphs=True), {0: 0}, text)]


def _planted_causes() -> list[Sample]:
    text = "Every cause of idle time three times: two GPUs, a peer rank on GPU 1 and another process on GPU 0."
    return [Sample("planted_causes", runs.planted_causes(), Shape("3.24.14"), {0: 0, 1: 1}, text)]


def _two_processes() -> list[Sample]:
    text = (
        "Two servers in one file. Each calls its GPU 0 (TARGET_INFO_CUDA_DEVICE says which is which), and their "
        "correlation ids collide. Step ranges are spelled as in TensorRT-LLM 1.0, without a number."
    )
    return [Sample("two_processes", runs.two_processes(), Shape("3.24.14"), {0: 0, 1: 1}, text)]


def _two_ranks() -> list[Sample]:
    run = runs.two_ranks()
    samples = []
    for rank, process in enumerate(run.processes.values()):
        shape = Shape("3.24.14", processes=frozenset({process.pid}), rank=rank, shift_ns=137_000_000 * rank)
        text = f"Rank {rank} of two tensor-parallel ranks with NCCL all-reduces; open both files together."
        samples.append(Sample(f"two_ranks/rank{rank}", run, shape, {rank: 0}, text))
    return samples


def _schemas() -> list[Sample]:
    run = runs.planted_causes(repeats=1, layers=1, seed=41)
    text = "The same small run in every schema family of Nsight Systems' SQLite exports."
    return [Sample(f"schemas/{family}", run, Shape(family, page_size=1_024), {0: 0, 1: 1}, text) for family in FAMILIES]


def _decode_kineto() -> list[Sample]:
    run = runs.decode_server(iterations=48, layers=2, seed=5)
    text = "A server like decode_server as torch's profiler sees it: no operating system calls, no metrics."
    return [Sample("decode_kineto", run, None, {0: 0}, text)]


GROUPS: dict[str, Callable[[], list[Sample]]] = {
    "decode_server": _decode_server,
    "decode_graph_level": _decode_graph_level,
    "planted_causes": _planted_causes,
    "two_processes": _two_processes,
    "two_ranks": _two_ranks,
    "schemas": _schemas,
    "decode_kineto": _decode_kineto,
}


def truth_path(path: Path) -> Path:
    """Where the truth about a sample stands: beside it, one file for all of schemas/."""
    folder = path.parent
    return folder / f"{'schemas' if folder.name == 'schemas' else path.name.split('.')[0]}.truth.json"


def write_sample(sample: Sample, folder: Path) -> Path:
    """Write NAME.sqlite, NAME.truth.json and NAME.md; schemas/ has one truth and one text for all."""
    run, shape = sample.run, sample.shape
    path = folder / (f"{sample.name}.sqlite" if shape else f"{sample.name}.json.gz")
    path.parent.mkdir(parents=True, exist_ok=True)
    if shape is None:
        kineto_writer.write(path, run)
        found, shift_ns = kineto_writer.counts(run), 0
        truths = {number: truth_of(run, gpu, os_calls=False) for gpu, number in sample.gpus.items()}
    else:
        nsys_writer.write(path, run, shape)
        found, shift_ns = nsys_writer.counts(run, shape), shape.shift_ns
        truths = {number: truth_of(run, gpu, shape.whole_graphs) for gpu, number in sample.gpus.items()}
    document = as_json(truths, SENTENCE, found, shift_ns)
    text = json.dumps(document, separators=(",", ":")).replace("],[", "],\n[")
    truth_path(path).write_text(text + "\n", encoding="utf-8")
    told = truth_path(path).with_name(truth_path(path).name.replace(".truth.json", ".md"))
    told.write_text(_description(sample, found, truths), encoding="utf-8")
    return path


def _description(sample: Sample, found: dict[str, int], truths: Mapping[int, DeviceTruth]) -> str:
    name = sample.name.split("/")[0] if sample.name.startswith("schemas/") else sample.name
    lines = [
        f"# {name}",
        "",
        sample.text,
        "",
        SENTENCE,
        "Made by `python -m sample_traces.make_samples`; the truth about its idle time is in the .truth.json beside it",
        "(see `sample_traces/truth.py`).",
        "",
    ]
    lines += [f"- {kind}: {number:,}" for kind, number in found.items() if number]
    for number, truth in truths.items():
        lines += ["", f"GPU {number}: idle {truth.idle_ns:,} of {truth.span_ns:,} ns", ""]
        lines += [f"- {cause}: {ns:,} ns" for cause, ns in truth.by_cause()]
    return "\n".join(lines) + "\n"


def big(kernels: int) -> Sample:
    """A decode server of about that many kernels."""
    layers = 32
    per_iteration = len(generation_step(layers)) + 3
    run = runs.decode_server(iterations=max(kernels // per_iteration, 12), layers=layers)
    return Sample(f"decode_{kernels}", run, Shape("3.24.14"), {0: 0}, "A long decode server, for benchmarks.")


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make_samples", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(GROUPS)}; all by default")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write to")
    parser.add_argument("--kernels", type=int, help="write one decode server of about so many kernels")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in GROUPS]
    if unknown:
        parser.error(f"no sample named {', '.join(unknown)}")
    samples = (
        [big(given.kernels)]
        if given.kernels
        else [sample for name in given.names or GROUPS for sample in GROUPS[name]()]
    )
    for item in samples:
        path = write_sample(item, given.out)
        sys.stdout.write(f"{path} {path.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
