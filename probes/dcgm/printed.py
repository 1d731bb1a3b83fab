"""What dcgmi prints, as figures: its lists of GPUs, and the lines of `dcgmi dmon`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_ROW = re.compile(r"\s*GPU\s+([0-9]{1,4})\s+(\S.*)")
_GPU = re.compile(r"^\|\s*([0-9]{1,4})\s*\|\s*Name:\s*(.*?)\s*\|", re.MULTILINE)
_UUID = re.compile(r"Device UUID:\s*(GPU-[0-9a-fA-F-]+)")


class Field(NamedTuple):
    """A profiling field of DCGM: its number, the series that it becomes, its unit, and the scale to that."""

    number: int
    series: str
    unit: str
    scale: float = 1.0


FIELDS: tuple[Field, ...] = (
    Field(1005, "DRAM active (DCGM)", "%", 100.0),
    Field(1002, "SMs active (DCGM)", "%", 100.0),
    Field(1003, "SM occupancy (DCGM)", "%", 100.0),
    Field(1004, "tensor cores active (DCGM)", "%", 100.0),
    Field(1001, "graphics engine active (DCGM)", "%", 100.0),
    Field(1006, "FP64 pipe active (DCGM)", "%", 100.0),
    Field(1007, "FP32 pipe active (DCGM)", "%", 100.0),
    Field(1008, "FP16 pipe active (DCGM)", "%", 100.0),
    Field(1009, "PCIe sent (DCGM)", "bytes/s"),
    Field(1010, "PCIe received (DCGM)", "bytes/s"),
)
# Where a GPU does not have all of them, those that matter most.
FEWER = FIELDS[:4]


@dataclass(frozen=True)
class Gpu:
    """A GPU as DCGM numbers it; `uuid` is '' where it is not told."""

    number: int
    name: str
    uuid: str


def listed(text: str) -> list[Gpu]:
    """The GPUs in what `dcgmi discovery -l` prints."""
    found = list(_GPU.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    gpus = []
    for match, end in zip(found, ends, strict=False):
        uuid = _UUID.search(text, match.end(), end)
        gpus.append(Gpu(int(match[1]), match[2][:100], uuid[1] if uuid else ""))
    return gpus


def parse(line: str, fields: Sequence[Field]) -> tuple[int, list[tuple[str, str, float]]] | None:
    """DCGM's number of the GPU in a line of `dcgmi dmon` and its figures (series, unit, value); None for other lines.

    What a GPU does not have (N/A), and what cannot be, is left out.
    """
    match = _ROW.fullmatch(line)
    if match is None:
        return None
    figures = []
    for field, word in zip(fields, match[2].split(), strict=False):
        try:
            value = float(word) * field.scale
        except ValueError:
            continue
        # A share that is far above 1 is what DCGM puts there for nothing.
        if math.isfinite(value) and value >= 0 and (field.unit != "%" or value <= 110):
            figures.append((field.series, field.unit, value))
    return int(match[1]), figures


def numbers(gpus: Sequence[Gpu], setting: str | None, order: Sequence[str]) -> dict[int, int] | None:
    """DCGM's number of each GPU that a workload sees, with the number that it has there; None where it cannot be told.

    `setting` is CUDA_VISIBLE_DEVICES, `order` the GPUs' UUIDs in the order in which this machine numbers them, empty
    where that is not known: DCGM's own order is taken then.
    """
    by_uuid = {gpu.uuid: gpu.number for gpu in gpus if gpu.uuid}
    known = [by_uuid.get(uuid) for uuid in order] if order else [gpu.number for gpu in gpus]
    if setting is None:
        return {number: place for place, number in enumerate(known) if number is not None}
    found: dict[int, int] = {}
    for place, word in enumerate(filter(None, (part.strip() for part in setting.split(",")))):
        if word.startswith("GPU-"):
            mine = [number for uuid, number in by_uuid.items() if uuid.startswith(word)]
        elif re.fullmatch(r"-?[0-9]{1,9}", word):
            at = int(word)
            # CUDA stops at the first that is not there.
            if not 0 <= at < len(known):
                break
            mine = [number for number in known[at : at + 1] if number is not None]
        else:
            return None
        if len(mine) != 1:
            return None
        found.setdefault(mine[0], place)
    return found
