"""What an export says of its own faults, as quality notes; and what it says of its capture, for people."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inspector.readers.nsys.metadata import Metadata
from inspector.readers.nsys.source import Source, records
from inspector.trace.quality import Quality

_WARNING, _ERROR = 2, 3
_LOSS = re.compile(
    r"not all|might have not|may have not|overflow|size limit|dropped|lost|missing data|incomplete|no cuda events", re.I
)
_LONGEST = 300
_FILTERS = {
    "EXPORT_PARAM_TABLES_TO_EXPORT": "tables that the export was limited to",
    "EXPORT_PARAM_TIMES_TO_EXPORT": "times that the export was limited to",
    "DERIVED_WINDOW_NS": "cut out of a longer export",
}
_SETTINGS = {
    "CUDA graphs": "CUDA_GRAPH_TRACE_OPTIONS:MODE",
    "CUDA trace scope": "CUDA_TRACE_SCOPE",
    "GPU memory usage": "COLLECT_GPU_MEMORY_USAGE",
    "OS calls shorter than (ns) left out": "OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS",
    "Start": "START_TRIGGER",
    "Stop": "STOP_TRIGGER",
    "Start delay (ms)": "START_DELAY_MS",
    "Asked duration (ms)": "RUN_DURATION_MS",
    "CPU sampling period": "LINUX_PERF_OPTIONS:SAMPLING_PERIOD",
}
_SYSTEM = {"OsDescription": "Operating system", "CpuDescription": "Processor", "CpuCores": "Processor cores"}


def messages(source: Source) -> list[str]:
    """What the profiler warned of, each as one line."""
    return [
        " ".join(str(text or "").split())
        for severity, text in records(source, "DIAGNOSTIC_EVENT", "severity", "text")
        if severity in (_WARNING, _ERROR)
    ]


def add_notes(said: Sequence[str], metadata: Metadata, quality: Quality) -> None:
    """Messages of the profiler, limits of the export, and whose clock was moved."""
    for key, text in _FILTERS.items():
        if value := metadata.export.get(key):
            quality.add("filtered", f"{text}: {value[:_LONGEST]}")
    if metadata.shift_ns:
        quality.add("clock", f"the export moved all times by {metadata.shift_ns} ns")
    if metadata.simulated:
        quality.add("simulated", "the file says that it was simulated, not recorded")
    for line in said:
        quality.add("profiler-loss" if _LOSS.search(line) else "profiler", line[:_LONGEST])


def details(source: Source, metadata: Metadata) -> dict[str, str]:
    """Label -> text, of what is worth knowing about the capture. No environment, host or user."""
    found = {"Program": metadata.product, "Export schema": metadata.schema}
    if metadata.export.get("EXPORT_TIME_UTC"):
        found["Exported (UTC)"] = metadata.export["EXPORT_TIME_UTC"]
    words = [*metadata.capture.get("PROCESS_0:COMMAND", ()), *_arguments(metadata)]
    if words:
        found["Command"] = " ".join(words)
    if metadata.traced:
        found["Traced"] = ", ".join(metadata.traced)
    for label, key in _SETTINGS.items():
        if values := dict.fromkeys(value for value in metadata.settings(key) if value):
            found[label] = ", ".join(values)
    for name, value in records(source, "TARGET_INFO_SYSTEM_ENV", "name", "value"):
        if name in _SYSTEM and value:
            found[_SYSTEM[name]] = str(value)
        elif name == "NvDriverVersion" and str(value).isdecimal() and len(str(value)) < 10 and int(value):
            found["Driver"] = ".".join((str(value)[:3], str(value)[3:-2], str(value)[-2:]))
        elif name == "CudaDriverVersion" and str(value).isdecimal() and len(str(value)) < 10 and int(value):
            found["CUDA of the driver"] = f"{int(value) // 1000}.{int(value) % 1000 // 10}"
    return found


def _arguments(metadata: Metadata) -> list[str]:
    arguments: list[str] = []
    while values := metadata.capture.get(f"PROCESS_0:ARGUMENT_{len(arguments)}"):
        arguments.append(values[0])
    return arguments
