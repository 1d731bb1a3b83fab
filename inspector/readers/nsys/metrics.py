"""Sampled counters: GPU_METRICS, and the JSON texts that held them in older exports."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as Map
from collections.abc import Sequence

import numpy as np

from inspector.readers.nsys.chunk import Chunk, Mapping
from inspector.readers.nsys.context import Context, combined
from inspector.readers.nsys.source import Batch, Source, records
from inspector.trace.table import Array

_GPU_BITS = 0xFF
_UNIT = re.compile(r"^(?P<name>.*?)\s*\[(?P<unit>[^\]]*)\]$")


def name_and_unit(text: str) -> tuple[str, str]:
    """'SMs Active [Throughput %]' -> ('SMs Active', '%')."""
    found = _UNIT.match(text)
    if not found:
        return text, "Hz" if text.endswith("Frequency") else ""
    # The names of clocks say MHz, their values are in Hz.
    unit = "Hz" if found["unit"] == "MHz" else found["unit"]
    return found["name"], "%" if unit.endswith("%") else unit


def mappings(source: Source) -> Sequence[Mapping]:
    """How samples are read: the table, and the older form where the table is not there."""
    if source.columns("GPU_METRICS"):
        return [_gpu_metrics(source)]
    if "data" in source.columns("GENERIC_EVENTS"):
        return [_json_metrics(source)]
    return []


def _gpu_metrics(source: Source) -> Mapping:
    # A metric id means something only together with its type.
    fields = ("typeId", "metricId", "metricName")
    names = {(t, m): str(name or "") for t, m, name in records(source, "TARGET_INFO_GPU_METRICS", *fields)}

    def chunks(batch: Batch, context: Context) -> Sequence[Chunk]:
        def series(key: tuple[int | None, ...]) -> int:
            type_id, metric = key
            name, unit = name_and_unit(names.get((type_id, metric)) or f"metric {metric}")
            return context.series(name, unit, context.gpu((type_id or 0) & _GPU_BITS))

        time, value = batch.ints("timestamp"), batch.ints("value")
        rows = combined([batch.codes("typeId"), batch.codes("metricId")], series)
        early, negative = time < 0, value < 0
        if early.any():
            batch.skipped("samples before the capture began", int(np.count_nonzero(early)))
        if negative.any():
            batch.repaired("value: negative samples, read as 0", int(np.count_nonzero(negative)))
        columns: dict[str, Array] = {"time": time, "series": rows, "value": np.maximum(value, 0).astype(np.float64)}
        without = batch.null("timestamp")
        if without.any():
            batch.skipped("rows without a time", int(np.count_nonzero(without)))
        return [Chunk("counters", columns).take(~early & ~without)]

    return Mapping("GPU_METRICS", ("timestamp", "typeId", "metricId", "value"), chunks)


def _json_metrics(source: Source) -> Mapping:
    types = {type_id: _title(data) for type_id, data in records(source, "GENERIC_EVENT_TYPES", "typeId", "data")}

    def chunks(batch: Batch, context: Context) -> Sequence[Chunk]:
        times: list[int] = []
        series: list[int] = []
        values: list[float] = []
        unreadable = early = 0
        for time, type_id, data in zip(*(batch.values(c) for c in ("timestamp", "typeId", "data")), strict=True):
            sample = _object(data)
            if time is None or sample is None:
                unreadable += 1
                continue
            if time < 0:
                early += 1
                continue
            title = types.get(type_id, "")
            device = context.gpu((type_id or 0) & _GPU_BITS) if "GPU" in title else -1
            for field, content in sample.items():
                value = _float(content)
                if value is None:
                    continue
                name, unit = name_and_unit(field)
                times.append(time)
                series.append(context.series(name, unit, device))
                values.append(value)
        if unreadable:
            batch.skipped("events that hold no JSON object with a time", unreadable)
        if early:
            batch.skipped("samples before the capture began", early)
        columns: dict[str, Array] = {
            "time": np.array(times, np.int64),
            "series": np.array(series, np.int32),
            "value": np.array(values, np.float64),
        }
        return [Chunk("counters", columns)]

    return Mapping("GENERIC_EVENTS", ("timestamp", "typeId", "data"), chunks)


def _object(text: object) -> Map[str, object] | None:
    try:
        found = json.loads(str(text))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _title(text: object) -> str:
    found = _object(text) or {}
    return str(found.get("Name", found.get("name", "")))


def _float(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except ValueError:
        return None
