"""A layer or profile file from its first to its last element; what cannot be read is noted and passed over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from inspector.readers.tensorrt.layer import layer_of
from inspector.readers.tensorrt.profile import count_of, is_time, mended, time_of
from inspector.readers.tensorrt.scan import Broken, Scan
from inspector.trace.layers import Layer
from inspector.trace.quality import Quality

MOST_LAYERS = 1_000_000
_MOST_BROKEN = 1_000
_TRUNCATED = "the file breaks off: layers behind that are not in it"


@dataclass(frozen=True)
class Unread:
    """An element that is no JSON, as it stands there."""

    text: str


@dataclass
class Document:
    """What was found: layers, times, inferences that were timed (-1 not told), and inputs and outputs of the engine."""

    layers: list[Layer] = field(default_factory=list)
    times: list[Layer] = field(default_factory=list)
    iterations: int = -1
    bindings: int = -1
    is_detailed: bool = False


def read_document(scan: Scan, quality: Quality) -> Document:
    """All of it."""
    found = Document()
    if scan.take("{"):
        _object(scan, found, quality)
    elif scan.take("["):
        for element in _elements(scan, quality):
            _entry(element, found, quality)
    if scan.replaced:
        quality.add("encoding", "text that is not UTF-8")
    if len(found.layers) + len(found.times) > MOST_LAYERS:
        quality.add("truncated", f"more than {MOST_LAYERS:,} layers: the rest was not read")
        del found.layers[MOST_LAYERS:], found.times[MOST_LAYERS:]
    return found


def _object(scan: Scan, found: Document, quality: Quality) -> None:
    alone: dict[str, object] = {}
    while not scan.take("}"):
        try:
            key = scan.value()
            if not isinstance(key, str) or not scan.take(":"):
                raise Broken("no key", not scan.peek())
            if key == "Layers" and scan.take("["):
                for element in _elements(scan, quality):
                    _layer(element, found, quality)
            else:
                alone[key] = scan.value()
        except Broken as error:
            if error.is_end:
                _note_end(quality)
            else:
                quality.add("invalid", "text behind the layers that cannot be read")
            break
        if not scan.take(",") and scan.peek() != "}":
            _note_end(quality)
            break
    bindings = alone.get("Bindings")
    found.bindings = len(bindings) if isinstance(bindings, list) else -1
    if not found.layers and "Name" in alone:
        # What getLayerInformation gives: one layer.
        _layer(alone, found, quality)


def _entry(element: object, found: Document, quality: Quality) -> None:
    """An element of a bare list: of a profile mostly, but scripts write layers so too."""
    if isinstance(element, Unread):
        line = mended(element.text)
        if line is None:
            quality.add("invalid", "lines that cannot be read", 1, element.text[:200])
            return
        quality.add("repaired", "lines that are no JSON, as names with quotes or a time 'nan' make them")
        element = line
    count = count_of(element)
    if count is not None:
        found.iterations = count
    elif isinstance(element, dict) and is_time(element):
        found.times.append(time_of(element, found.iterations, quality))
    else:
        _layer(element, found, quality)


def _layer(element: object, found: Document, quality: Quality) -> None:
    if isinstance(element, Unread):
        quality.add("invalid", "layers that cannot be read", 1, element.text[:200])
        return
    layer = layer_of(element, quality)
    if layer is not None:
        found.layers.append(layer)
        found.is_detailed |= isinstance(element, dict)


def _elements(scan: Scan, quality: Quality) -> Iterator[object]:
    """Those of a list up to its end, whose sign is taken."""
    broken = read = 0
    while not scan.take("]"):
        if not scan.peek():
            _note_end(quality)
            return
        try:
            yield scan.value()
            read += 1
            if read > MOST_LAYERS:
                return
            if scan.take(",") or scan.peek() in ("]", ""):
                continue
        except Broken as error:
            if error.is_end and mended(scan.rest()) is None:
                _note_end(quality)
                return
        skipped, is_more = scan.skip()
        yield Unread(skipped)
        broken += 1
        if not is_more:
            return
        if broken >= _MOST_BROKEN:
            quality.add("invalid", f"{broken:,} elements cannot be read: the rest was not tried")
            return


def _note_end(quality: Quality) -> None:
    """The file breaks off, which what stands around it finds out as well."""
    if not quality.count("truncated"):
        quality.add("truncated", _TRUNCATED)
