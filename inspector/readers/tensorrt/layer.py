"""One layer as an inspector's JSON has it: a name alone, or an object whose fields differ between releases."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache

from inspector.readers.tensorrt.formats import LONGEST, bytes_of, precision_of
from inspector.readers.tensorrt.sources import sources_of_metadata, sources_of_name
from inspector.trace.layers import Layer, Tensor
from inspector.trace.quality import Quality

_MOST_DIMENSIONS = 16
_MOST_TENSORS = 4096
_ATTRIBUTES = 800
# Fields with a place of their own.
_KNOWN = {"Name", "LayerType", "Inputs", "Outputs", "TacticName", "StreamId", "Metadata", "Origin"}
_DYNAMIC = "n/a due to dynamic"


def layer_of(value: object, quality: Quality) -> Layer | None:
    """The layer; None, with a note, for what is none."""
    if isinstance(value, str):
        sources, more = sources_of_name(value)
        return Layer(value, sources=sources, sources_from="name", has_more=more)
    if not isinstance(value, dict):
        quality.add("invalid", "entries in the list of layers that are no layer")
        return None
    name = _text(value, "Name")
    if not name:
        quality.add("invalid", "layers without a name")
    metadata = sources_of_metadata(_text(value, "Metadata"))
    sources, more = (metadata, False) if metadata else sources_of_name(name)
    stream = value.get("StreamId")
    tactic = _text(value, "TacticName") or _named(_text(value, "TacticValue"))
    return Layer(
        name,
        sys.intern(_text(value, "LayerType")),
        sources,
        "metadata" if metadata else "name",
        more,
        _tensors(value.get("Inputs"), quality),
        _tensors(value.get("Outputs"), quality),
        _weight_bytes(value, quality),
        _weight_precision(value),
        sys.intern(tactic),
        sys.intern(_text(value, "Origin")),
        stream if isinstance(stream, int) and not isinstance(stream, bool) and 0 <= stream < 1 << 31 else -1,
        sys.intern(_attributes(value)),
    )


def _text(value: Mapping[str, object], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _named(tactic: str) -> str:
    """The number of a tactic that has no name; zero is none."""
    return tactic if tactic.lower().removeprefix("0x").strip("0") else ""


def _tensors(value: object, quality: Quality) -> tuple[Tensor, ...] | None:
    if not isinstance(value, list):
        return None
    if len(value) > _MOST_TENSORS:
        quality.add("invalid", "layers with more tensors than a layer can have: they are not read")
        return None
    return tuple(_tensor(each, quality) for each in value)


def _tensor(value: object, quality: Quality) -> Tensor:
    if not isinstance(value, dict):
        if not isinstance(value, str):
            quality.add("invalid", "tensors that cannot be read")
        return Tensor(value if isinstance(value, str) else "", None, "", "", None)
    # One field for both in all files that were seen; two in what some tools make of them.
    words = _text(value, "Format/Datatype") or " ".join(_text(value, key) for key in ("Datatype", "Format")).strip()
    if len(words) > LONGEST:
        quality.add("invalid", "formats longer than any that there is", 1, words[:LONGEST])
        words = ""
    words = sys.intern(words)
    dimensions = _dimensions(value.get("Dimensions"), quality)
    precision, size, trouble = _size(words, dimensions, _text(value, "Location").lower() == "host")
    if trouble is not None:
        quality.add(*trouble, 1, words)
    return Tensor(_text(value, "Name"), dimensions, words, precision, size)


@lru_cache(1 << 14)
def _size(
    words: str, dimensions: tuple[int, ...] | None, in_host_memory: bool
) -> tuple[str, int | None, tuple[str, str] | None]:
    """Precision, bytes on the device, and why those are not known. Tensors of an engine are much alike."""
    precision = precision_of(words)
    trouble = None
    if dimensions is not None and -1 in dimensions:
        trouble = "absent", "tensors whose shape depends on the input: their bytes are not known"
    elif words.lower().startswith(_DYNAMIC):
        trouble = "absent", "tensors whose format depends on the input: their bytes are not known"
    elif not precision:
        trouble = "ignored", "tensors of a format that is not known here: their bytes are not known"
    return precision, 0 if in_host_memory else bytes_of(dimensions, precision), trouble


def _dimensions(value: object, quality: Quality) -> tuple[int, ...] | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) <= _MOST_DIMENSIONS:
        found = tuple(each for each in value if type(each) is int and -1 <= each < 1 << 63)
        if len(found) == len(value):
            return found
    quality.add("invalid", "shapes that cannot be read")
    return None


def _weight_bytes(value: Mapping[str, object], quality: Quality) -> int | None:
    """Those of 'Weights', 'Bias', 'ConvWeights' and the like; 0 where none are listed."""
    total = 0
    for key, each in value.items():
        if not (key.endswith(("Weights", "Bias")) and isinstance(each, dict)):
            continue
        count, kind = each.get("Count"), each.get("Type")
        size = None
        if isinstance(count, int) and not isinstance(count, bool) and isinstance(kind, str):
            size = bytes_of([count], precision_of(kind))
        if size is None:
            quality.add("ignored", "weights that are not understood: the bytes of their layer are not known", 1, key)
            return None
        total += size
    return total


def _weight_precision(value: Mapping[str, object]) -> str:
    for key, each in value.items():
        if key.endswith("Weights") and isinstance(each, dict) and isinstance(each.get("Type"), str):
            return precision_of(each["Type"])
    return ""


def _attributes(value: Mapping[str, object]) -> str:
    found: list[str] = []
    length = 0
    for key, each in value.items():
        if key in _KNOWN or length > _ATTRIBUTES:
            continue
        found.append(f"{key}: {_words(each)}"[:_ATTRIBUTES])
        length += len(found[-1])
    return "\n".join(found) + ("\n…" if length > _ATTRIBUTES else "")


def _words(value: object) -> str:
    if isinstance(value, dict):
        if value.keys() == {"Type", "Count"}:
            return f"{value['Count']} of {value['Type']}"[:_ATTRIBUTES]
        return f"{len(value)} fields"
    if isinstance(value, list):
        shown = ", ".join(str(each) for each in value[:16] if not isinstance(each, dict | list))
        return f"[{shown}{', …' if len(value) > 16 else ''}]"
    return str(value)
