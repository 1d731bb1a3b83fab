"""TensorRT's own account of an engine: layer information (`trtexec --exportLayerInfo`, IEngineInspector) and profiles
(`trtexec --exportProfile`).

    {"Layers": ["conv1 + relu1", ...], "Bindings": [...]}          names only
    {"Layers": [{"Name": ..., "LayerType": ..., "Inputs": [...]}]}  with --profilingVerbosity=detailed
    [{"count": 641}, {"name": ..., "timeMs": ..., "averageMs": ...}]

Written after files of TensorRT 8.2 to 10.x that are public; no TensorRT was at hand.
"""

from __future__ import annotations

import re
from pathlib import Path

from inspector.errors import Unreadable
from inspector.readers.reader import Progress, Report
from inspector.readers.tensorrt.document import Document, read_document
from inspector.readers.tensorrt.scan import Scan
from inspector.trace.builder import Builder
from inspector.trace.layers import EngineLayers, Layer
from inspector.trace.quality import Quality
from inspector.trace.schema import WORK_TABLES
from inspector.trace.trace import Trace, TraceInfo

NAME = "tensorrt"
SUFFIXES = (".json",)

_LAYERS = re.compile(rb'\{\s*"Layers"\s*:\s*\[\s*[\]{"]')
_LATER = re.compile(rb'"Layers"\s*:\s*\[\s*[\]{"]')
_ONE = re.compile(rb'[\[{]\s*\{?\s*"Name"\s*:\s*"')
_OTHERS = re.compile(rb'"(traceEvents|ph)"\s*:')
_COUNT = re.compile(rb'\[\s*\{\s*"count"\s*:\s*\d+\s*\}\s*[,\]]')
_TIMED = re.compile(rb'\[\s*\{\s*"name"\s*:\s*"')
_WHY = "layers of an engine are no records; record a run of it to have them"
_PROFILE = re.compile(r" ?\[profile (\d{1,6})\]")
_DETAILS = "layer names only: export with --profilingVerbosity=detailed, for which the engine must be built so too"


def sniff(head: bytes, path: Path) -> float:
    """Certainty that `path` is such a file, by how it begins."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _OTHERS.search(text):
        return 0.0
    named = _LAYERS.match(text)
    if named is not None:
        return 0.95 if named[0][-1:] != b"{" or b'"Name"' in text else 0.2
    typed = b'"LayerType"' in text
    if text.startswith(b"{") and _LATER.search(text) and (typed or b'"Bindings"' in text):
        return 0.8
    if _ONE.match(text) and typed:
        return 0.9
    timed = b'"averageMs"' in text or b'"timeMs"' in text
    if _COUNT.match(text):
        return 0.95 if timed else 0.6
    return 0.9 if timed and _TIMED.match(text) else 0.0


def read(path: Path, report: Report) -> Trace:
    """The whole file. Raises Unreadable when not one layer is in it, Cancelled."""
    builder = Builder()
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            scan = Scan(file, lambda done: report(Progress("layers", done, size)))
            found = read_document(scan, builder.quality)
    except OSError as error:
        raise Unreadable(f"cannot read {path}", error.strerror or str(error), "check the path") from error
    if not found.layers and not found.times:
        why = builder.quality.notes[0].text if builder.quality.notes else "its list is empty"
        raise Unreadable(f"{path} holds no layers of an engine", why, "export it again")
    details = {"inferences timed": f"{found.iterations:,}"} if found.iterations > 0 else {}
    if found.bindings >= 0:
        details["inputs and outputs"] = f"{found.bindings:,}"
    info = TraceInfo((str(path),), NAME, "TensorRT", details=details, missing=dict.fromkeys(WORK_TABLES, _WHY))
    trace = builder.build(info)
    trace.layers = tuple(_engines(path.name, found, builder.quality))
    return trace


def _engines(name: str, found: Document, quality: Quality) -> list[EngineLayers]:
    """One for each optimization profile that layers are listed of, and the times that no layers stand beside."""
    profiles: dict[str, list[Layer]] = {}
    for layer in found.layers:
        number = _PROFILE.search(layer.name)
        profiles.setdefault(number[1] if number is not None else "0", []).append(layer)
    if found.layers and not found.is_detailed:
        quality.add("absent", _DETAILS)
    engines = [
        EngineLayers(
            f"{name}, optimization profile {number}" if len(profiles) > 1 else name,
            tuple(layers),
            is_detailed=found.is_detailed,
        )
        for number, layers in profiles.items()
    ]
    if found.times:
        engines.append(
            EngineLayers(name, tuple(found.times), is_listed=False, is_timed=True, iterations=found.iterations)
        )
    return engines
