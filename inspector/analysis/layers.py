"""The layers of an engine in figures: how many, what they hold and move, how long they took, in which precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from inspector.trace.layers import EngineLayers, Layer, Tensor
from inspector.trace.results import ResultColumn, ResultTable
from inspector.trace.trace import Trace


@dataclass(frozen=True)
class LayerFigures:
    """Sums over the layers of an engine. None: the files do not tell.

    `launches` are layers that launch work; `sources` the distinct layers of the network that they hold, at least those
    where `has_more`; `bytes` what layers move whose shapes are known (modelled), `unknown_bytes` counts the others.
    `total_ns` is the sum of the averages: one inference, as trtexec measured layer by layer; `untimed` counts listed
    layers that launch work and have no time. `by_precision` is ns where there are times, else layers, largest first.
    """

    layers: int
    launches: int | None
    sources: int
    has_more: bool
    reformats: int
    reformat_ns: float | None
    bytes: int | None
    unknown_bytes: int
    total_ns: float | None
    untimed: int
    by_precision: dict[str, float]


@dataclass(frozen=True)
class LayersOf:
    """An engine, its figures, and its layers as a table: rows are those of `engine.layers`."""

    engine: EngineLayers
    figures: LayerFigures
    table: ResultTable


class LayerTables:
    """All engines of a trace, as `trace.layers` has them; an index."""

    def __init__(self, engines: Sequence[LayersOf]) -> None:
        self.engines = tuple(engines)

    @classmethod
    def build(cls, trace: Trace) -> LayerTables:
        """Make them."""
        return cls([LayersOf(engine, figures(engine), layer_table(engine)) for engine in trace.layers])


UNKNOWN = "unknown"


def figures(engine: EngineLayers) -> LayerFigures:
    """Those of one engine."""
    layers = engine.layers
    launches = [layer.launches for layer in layers]
    times = [_average(layer) for layer in layers]
    known = [ns for ns in times if ns is not None]
    moved = [layer.nbytes for layer in layers]
    names = {source for layer in layers for source in layer.sources}
    reformats = [at for at, layer in enumerate(layers) if layer.is_reformat]
    mix: dict[str, float] = {}
    for layer, ns, runs in zip(layers, times, launches, strict=True):
        weight = (ns or 0.0) if known else float(runs is not False)
        if weight:
            mix[layer.precision or UNKNOWN] = mix.get(layer.precision or UNKNOWN, 0.0) + weight
    return LayerFigures(
        len(layers),
        None if any(runs is None for runs in launches) else sum(map(bool, launches)),
        len(names),
        any(layer.has_more or not layer.is_listed for layer in layers),
        len(reformats),
        sum(times[at] or 0.0 for at in reformats) if known else None,
        sum(size for size in moved if size is not None) if any(size is not None for size in moved) else None,
        sum(size is None for size in moved),
        sum(known) if known else None,
        sum(ns is None and runs is not False for ns, runs in zip(times, launches, strict=True)) if known else 0,
        dict(sorted(mix.items(), key=lambda pair: -pair[1])),
    )


def _average(layer: Layer) -> float | None:
    return layer.times.average_ns if layer.times is not None else None


def layer_table(engine: EngineLayers) -> ResultTable:
    """The layers in the order in which they run, one row each; what the files do not tell is absent."""
    layers = engine.layers
    times = [_average(layer) for layer in layers]
    total = sum(ns for ns in times if ns is not None)
    shares = [100 * ns / total if ns is not None and total else None for ns in times]
    fused = [len(layer.sources) if layer.sources or not layer.has_more else None for layer in layers]
    columns = (
        _numbers("#", range(1, len(layers) + 1), "", "place in the order in which the engine runs", np.int64),
        _texts("Layer", [layer.name for layer in layers], "the engine's layer, as TensorRT names it"),
        _texts("Type", [layer.type for layer in layers], "what TensorRT runs it as"),
        _numbers("Holds", fused, "", _HOLDS, np.int64),
        _texts("In", _each(layers, "inputs", _precision), "precision of its inputs"),
        _texts("Out", _each(layers, "outputs", _precision), "precision of its outputs"),
        _numbers("Average", times, "ns", "mean time of an inference, measured by trtexec", np.float64),
        _numbers("Median", [_median(layer) for layer in layers], "ns", "middle time, measured by trtexec", np.float64),
        _numbers("Share", shares, "%", "of the averages of all layers", np.float64),
        _numbers("Bytes", [layer.nbytes for layer in layers], "bytes", _BYTES, np.int64),
        _texts("Input shapes", _each(layers, "inputs", _shape), "dimensions of its inputs; −1 depends on the input"),
        _texts("Output shapes", _each(layers, "outputs", _shape), "dimensions of its outputs"),
        _texts("Tactic", [layer.tactic for layer in layers], "the kernel that TensorRT chose, or its number"),
        _texts("Layers of the network", [" + ".join(layer.sources) for layer in layers], "what was fused into it"),
        _texts("Input formats", _each(layers, "inputs", _format), "layout of its inputs in memory"),
        _texts("Output formats", _each(layers, "outputs", _format), "layout of its outputs in memory"),
    )
    return ResultTable(engine.name, columns, len(layers))


_HOLDS = (
    "layers of the network that were fused into it: from its metadata where it has some, else the parts of its name. "
    "With + there are more than are named"
)
_BYTES = (
    "modelled: its inputs, outputs and listed weights, each once, without padding; not what it keeps inside or finds "
    "in a cache"
)


def _median(layer: Layer) -> float | None:
    return layer.times.median_ns if layer.times is not None else None


def _precision(tensor: Tensor) -> str:
    return tensor.precision


def _format(tensor: Tensor) -> str:
    return tensor.format


def _shape(tensor: Tensor) -> str:
    if tensor.dimensions is None:
        return ""
    return "×".join(str(each).replace("-", "−") for each in tensor.dimensions) or "1 value"


def _each(layers: Sequence[Layer], side: str, words: Callable[[Tensor], str]) -> list[str]:
    """Of every layer the words for its tensors, one after the other; those of one kind once for all of them."""
    found = []
    for layer in layers:
        tensors: tuple[Tensor, ...] = getattr(layer, side) or ()
        texts = [words(tensor) or "?" for tensor in tensors]
        if words is not _shape:
            texts = list(dict.fromkeys(texts))
        found.append(", ".join(texts) if any(text != "?" for text in texts) else "")
    return found


def _numbers(
    name: str,
    values: Sequence[float | None],
    unit: str,
    meaning: str,
    dtype: type[np.int64] | type[np.float64],
) -> ResultColumn:
    absent = np.array([value is None for value in values], bool)
    array = np.array([0 if value is None else value for value in values], dtype)
    return ResultColumn(name, array, None, absent if absent.any() else None, unit, meaning)


def _texts(name: str, values: Sequence[str], meaning: str) -> ResultColumn:
    """'' stands for what is not told."""
    codes: dict[str, int] = {}
    numbers = [codes.setdefault(value, len(codes)) if value else -1 for value in values]
    return ResultColumn(name, np.array(numbers, np.int32), tuple(codes), None, "", meaning)
