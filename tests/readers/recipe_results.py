"""Result folders of recipes in the documented form: frames of pandas, written as recipes write theirs.

Stand-ins: nsys itself was never run for this.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pd = pytest.importorskip("pandas")

PROJECTED = {
    "Name": ["step", "attention", "mlp", "step"],
    "Projected Start": [1_000, 1_000, 4_000, 9_000],
    "Projected Duration": [7_000, 2_000, 4_000, 500],
    "Orig Start": [100, 150, 900, 8_000],
    "Orig Duration": [1_500, 600, 500, 300],
    "Style": ["PushPop"] * 4,
    "PID": [77, 77, 77, 77],
    "TID": [78, 78, 78, 79],
    "NumGPUOps": [9, 4, 5, 1],
    "Lvl": [0, 1, 1, 0],
    "NumChild": [2, 0, 0, 0],
    "RangeId": [1, 2, 3, 4],
    "ParentId": [None, 1, 1, None],
    "RangeStack": [":1", ":1:2", ":1:3", ":4"],
}
LATER = {
    "Text": ["step", "attention"],
    "Start": [1_000, 1_200],
    "End": [8_000, 3_000],
    "PID": [77, 77],
    "TID": [78, 78],
    "Stack Level": [0, 1],
    "Children Count": [1, 0],
    "Range ID": [1, 2],
    "Parent ID": [None, 1],
    "Range Stack": [[1], [1, 2]],
}
GAPS = {
    "Row#": [1, 2],
    "Duration (ns)": [700_000_000, 600_000_000],
    "Start (ns)": [1_000_000_000, 3_000_000_000],
    "PID": [77, 77],
    "Device ID": [0, 1],
}
KERNELS = {
    "Count": [5, 3],
    "Mean": [10.5, 7.0],
    "Std": [0.5, float("nan")],
    "Min": [10, 7],
    "Q1": [10.0, 7.0],
    "Median": [10.0, 7.0],
    "Q3": [11.0, 7.0],
    "Max": [11, 7],
    "Sum": [52, 21],
}
METRICS = {
    "Duration": [0, 1_000_000, 2_000_000],
    "SMs Active": [10.5, 20.0, 30.0],
    "SM Issue": [1.0, 2.0, 3.0],
    "Tensor Active": [0.0, 50.0, 99.9],
    "GPU": [0, 0, 0],
}


def frames_of(recipe: str, ranks: int = 2) -> dict[str, Any]:
    """The outputs of a recipe over `ranks` reports, each with the same rows."""
    files = pd.DataFrame({"File": [f"report{rank}" for rank in range(ranks)]}).rename_axis("Rank")
    found = {"files": files}
    if recipe == "cuda_gpu_kern_sum":
        one = pd.DataFrame(KERNELS, index=pd.Index(["gemm", "softmax"], name="Name"))
        found["rank_stats"] = pd.concat([one.assign(Rank=rank) for rank in range(ranks)])
        found["all_stats"] = one
        return found
    one = {
        "nvtx_gpu_proj_trace": pd.DataFrame(PROJECTED),
        "gpu_gaps": pd.DataFrame(GAPS),
        "gpu_metric_util_map": pd.DataFrame(METRICS).astype({"Duration": "category"}),
        "nccl_gpu_overlap_trace": pd.DataFrame(
            {
                "Type": ["Communication", "Compute"],
                "Start": [0, 500],
                "End": [1_000, 2_000],
                "Overlap": [50.0, 33.3],
                "GPU": [0, 0],
            }
        ),
    }.get(recipe, pd.DataFrame({"A thing": [1, 2], "Other": ["x", None]}))
    name = "trace" if recipe.endswith("_trace") else "analysis"
    found[name] = pd.concat([one.assign(Rank=rank) for rank in range(ranks)])
    return found


def write_results(
    folder: Path,
    recipe: str,
    frames: Mapping[str, Any] | None = None,
    suffixes: Sequence[str] = (".parquet",),
    described: bool = True,
) -> Path:
    """The folder that a run of `recipe` leaves."""
    folder.mkdir(parents=True)
    frames = frames_of(recipe) if frames is None else frames
    outputs = {}
    for name, frame in frames.items():
        for suffix in suffixes:
            path = folder / f"{name}{suffix}"
            frame.to_parquet(path) if suffix == ".parquet" else frame.to_csv(path)
            outputs[path.name] = "Data"
    (folder / "stats.ipynb").write_text("{}")
    if described:
        head = {
            "RecipeJsonVersion": "1.3",
            "RecipeName": recipe,
            "DisplayName": recipe.replace("_", " ").title(),
            "StartTime": "2026-11-30 10:00:00",
            "EndTime": "2026-11-30 10:00:05",
            "InputFiles": [f"/data/report{rank}.nsys-rep" for rank in range(2)],
            "Outputs": outputs,
        }
        (folder / f"{folder.name}.nsys-analysis").write_text(json.dumps(head))
    return folder


def zipped(folder: Path, path: Path) -> Path:
    """A zip of the folder, with its name."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, f"{folder.name}/{file.relative_to(folder).as_posix()}")
    return path
