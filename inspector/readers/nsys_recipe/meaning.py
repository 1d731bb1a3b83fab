"""What the columns of recipes mean and what they are counted in, by name: the files do not say.

Names differ between releases ('Projected Start', later 'Start'); both are known. Of a recipe that is not here only a
unit in the heading itself is taken: 'Total Time (ns)'.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_UNIT = re.compile(r"^(.*?)\s*[(\[](ns|bytes|B|%|Hz)[)\]]$")
_UNITS = {"B": "bytes"}


@dataclass(frozen=True)
class Meaning:
    """`unit` 'ns', 'bytes', '%' or ''; `text` what it is; `is_moment` a time of a clock."""

    unit: str = ""
    text: str = ""
    is_moment: bool = False


@dataclass(frozen=True)
class Recipe:
    """A recipe that is known: what it works out, and its columns by their plain names."""

    description: str
    columns: Mapping[str, Meaning] = field(default_factory=dict)
    draws: str = ""
    """What its rows are on the timeline; '' where they are none."""


_STATS = {
    "count": Meaning("", "how often"),
    "num": Meaning("", "how often"),
    "instances": Meaning("", "how often"),
    "mean": Meaning("ns", "mean duration"),
    "avg": Meaning("ns", "mean duration"),
    "std": Meaning("ns", "standard deviation of the durations"),
    "stddev": Meaning("ns", "standard deviation of the durations"),
    "min": Meaning("ns", "shortest"),
    "q1": Meaning("ns", "a quarter of them are shorter"),
    "med": Meaning("ns", "half of them are shorter"),
    "median": Meaning("ns", "half of them are shorter"),
    "q3": Meaning("ns", "three quarters of them are shorter"),
    "max": Meaning("ns", "longest"),
    "sum": Meaning("ns", "all durations together: work that runs at once counts more than once"),
    "total time": Meaning("ns", "all durations together: work that runs at once counts more than once"),
    "total": Meaning("ns", "all durations together: work that runs at once counts more than once"),
}
_SPANS = {
    "start": Meaning("ns", "when it began, on the clock of its report", True),
    "end": Meaning("ns", "when it ended, on the clock of its report", True),
    "duration": Meaning("ns", "how long it took"),
}
_PROJECTED = {
    **_SPANS,
    "start": Meaning("ns", "start of the first work on a GPU that was launched inside the range", True),
    "end": Meaning("ns", "end of the last work on a GPU that was launched inside the range", True),
    "projected start": Meaning("ns", "start of the first work on a GPU that was launched inside the range", True),
    "projected duration": Meaning("ns", "from there to the end of the last such work"),
    "orig start": Meaning("ns", "when the range itself began on its thread", True),
    "orig duration": Meaning("ns", "how long the range itself took on its thread"),
    "numgpuops": Meaning("", "pieces of work on a GPU that were launched inside it"),
    "lvl": Meaning("", "how deep it lies in other ranges"),
    "stack level": Meaning("", "how deep it lies in other ranges"),
    "numchild": Meaning("", "ranges inside it"),
    "children count": Meaning("", "ranges inside it"),
}
_RANK = {"rank": Meaning("", "place of the report among those given, by file name: no rank of MPI")}

RECIPES: Mapping[str, Recipe] = {
    "gpu_gaps": Recipe(
        "Times in which a GPU had nothing to do for longer than a limit (500 ms unless set otherwise), per process. "
        "Why it had nothing to do is not in here: open the report for that.",
        {
            **_SPANS,
            "start": Meaning("ns", "when the last work before it had ended", True),
            "duration": Meaning("ns", "until the next work"),
        },
        "long idle",
    ),
    "cuda_gpu_kern_sum": Recipe("How long the kernels took, by name.", _STATS),
    "nvtx_gpu_proj_trace": Recipe(
        "NVTX ranges as they lie on the GPU: from the first to the last work that was launched inside each.",
        _PROJECTED,
        "on the GPU",
    ),
    "gpu_metric_util_map": Recipe(
        "How busy parts of each GPU were, as means over equal pieces of time.",
        {
            "duration": Meaning("ns", "where the piece of time begins", True),
            "sms active": Meaning("%", "SMs with at least one warp"),
            "sm active": Meaning("%", "SMs with at least one warp"),
            "sm issue": Meaning("%", "cycles in which an SM issued an instruction"),
            "tensor active": Meaning("%", "cycles in which the tensor cores worked"),
        },
    ),
    "nccl_gpu_overlap_trace": Recipe(
        "Communication kernels (their names begin with nccl) and computing kernels, and how much of each lies beside "
        "the other kind.",
        {**_STATS, **_SPANS},
        "communication and computing",
    ),
    "inflight_gaps": Recipe(
        "Idle time of every GPU by the cause that Inflight Inspector finds for it; the rows of one GPU sum to its idle "
        "time exactly.",
        {
            **_SPANS,
            "span": Meaning("ns", "from the first to the last work on the GPU"),
            "busy": Meaning("ns", "with at least one piece of work"),
            "idle": Meaning("ns", "without any"),
            "longest": Meaning("ns", "the longest share of one gap"),
            "gaps": Meaning("", "gaps with this cause in them"),
            "epoch": Meaning("ns", "wall clock of time 0 of the report, since 1970", True),
        },
        "long gaps",
    ),
}


def plain_name(name: str) -> str:
    """The name of a column in small letters, without a unit in brackets: how RECIPES calls it."""
    found = _UNIT.match(name)
    return " ".join((found[1] if found else name).replace("_", " ").lower().split())


def meaning_of(recipe: str, column: str) -> Meaning:
    """What a column of a recipe is; nothing where that is not known."""
    plain, found = plain_name(column), _UNIT.match(column)
    columns = RECIPES[recipe].columns if recipe in RECIPES else {}
    known = columns.get(plain) or _RANK.get(plain) or Meaning()
    return Meaning(_UNITS.get(found[2], found[2]), known.text, known.is_moment) if found else known
