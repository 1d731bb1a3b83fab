"""What the layers view says of an engine above and beside its table, in words. Pure; the view only paints it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inspector import units
from inspector.analysis.layers import UNKNOWN, LayerFigures, LayersOf
from inspector.trace.layers import Layer, Tensor

_LINES = 400


@dataclass(frozen=True)
class Said:
    """One figure: its value, notes from long to short, on what it rests, and the exact numbers."""

    value: str
    notes: tuple[str, ...]
    basis: str
    tip: str


def headline(engines: Sequence[LayersOf], at: int) -> tuple[Said, Said, Said, Said]:
    """Layers, time, bytes and precision of the `at`-th engine, beside those of another one where there is one."""
    shown = engines[at]
    other = None
    if len(engines) > 1:
        other = engines[0] if at else engines[1]
    return _layers(shown, other), _time(shown, other), _bytes(shown, other), _precision(shown.figures)


def details(layer: Layer) -> str:
    """All that the files say of one layer."""
    lines = [layer.name, ""]
    if layer.sources:
        more = " and more" if layer.has_more else ""
        whence = "by its metadata" if layer.sources_from == "metadata" else "by its name"
        lines.append(f"Holds {_counted(len(layer.sources), 'layer')}{more} of the network, {whence}:")
        lines += [f"  {source}" for source in layer.sources]
        lines.append("")
    if layer.times is not None:
        times = layer.times
        for label, ns in (
            ("Average", times.average_ns),
            ("Median", times.median_ns),
            ("Sum over all inferences", times.total_ns),
        ):
            lines.append(f"{label}: {units.time(ns) if ns is not None else UNKNOWN}")
        lines.append("")
    for label, tensors in (("Inputs", layer.inputs), ("Outputs", layer.outputs)):
        if tensors is not None:
            lines += [f"{label}:", *(f"  {_tensor(tensor)}" for tensor in tensors)]
    if layer.weight_bytes:
        lines.append(f"Weights: {units.size(layer.weight_bytes)}")
    rest = (("Type", layer.type), ("Tactic", layer.tactic), ("Origin", layer.origin))
    lines += [f"{label}: {text}" for label, text in rest if text]
    lines += [f"Stream: {layer.stream}"] if layer.stream >= 0 else []
    lines += layer.attributes.splitlines()
    if not layer.is_listed:
        lines.append("Only the profile names it.")
    cut = len(lines) - _LINES
    return "\n".join([*lines[:_LINES], f"… and {cut:,} more lines"] if cut > 0 else lines)


def _tensor(tensor: Tensor) -> str:
    shape = "×".join(str(each).replace("-", "−") for each in tensor.dimensions) if tensor.dimensions is not None else ""
    size = units.size(tensor.nbytes) if tensor.nbytes is not None else ""
    return ", ".join(part for part in (f"{tensor.name}: {shape}".rstrip(": "), tensor.format, size) if part)


def _layers(shown: LayersOf, other: LayersOf | None) -> Said:
    found = shown.figures
    notes = []
    if found.launches is not None:
        notes.append(f"{found.launches:,} launch work")
    if found.sources:
        more = "at least " if found.has_more else ""
        notes.append(f"hold {more}{found.sources:,} of the network")
    if found.reformats:
        part = ""
        if found.total_ns and found.reformat_ns is not None:
            part = f", {units.share(found.reformat_ns, found.total_ns)} of the time"
        notes.append(f"{_counted(found.reformats, 'reformat')}{part}")
    versus = _versus(shown, other, lambda figures: figures.layers, lambda value: f"{value:,.0f}")
    tip = "\n".join(
        [
            f"{_counted(found.layers, 'layer')} of the engine",
            *notes,
            "Reformats only bring a tensor into another format; quantizing is not counted.",
        ]
    )
    return Said(f"{found.layers:,}", _notes(versus, notes), "as listed" if shown.engine.is_listed else "as timed", tip)


def _time(shown: LayersOf, other: LayersOf | None) -> Said:
    found = shown.figures
    if found.total_ns is None:
        why = "No profile: add the file of trtexec --exportProfile"
        return Said(UNKNOWN, (why, "No profile"), "", why)
    count = shown.engine.iterations
    notes = [f"over {_counted(count, 'inference')}"] if count > 0 else []
    notes += [f"{found.untimed:,} layers without a time"] if found.untimed else []
    versus = _versus(shown, other, lambda figures: figures.total_ns, units.time)
    tip = "\n".join([f"{found.total_ns:,.0f} ns: the averages of all layers added up", *notes])
    return Said(units.time(found.total_ns), _notes(versus, notes), "measured by trtexec", tip)


def _bytes(shown: LayersOf, other: LayersOf | None) -> Said:
    found = shown.figures
    if found.bytes is None:
        if shown.engine.is_detailed:
            why = "Shapes or formats are not in the file, or depend on the input"
        elif shown.engine.is_listed:
            why = "Names only: export with --profilingVerbosity=detailed"
        else:
            why = "Add the file of trtexec --exportLayerInfo"
        return Said(UNKNOWN, (why,), "", why)
    notes = [f"and {_counted(found.unknown_bytes, 'layer')} of unknown size"] if found.unknown_bytes else []
    if found.total_ns:
        notes.append(f"{units.rate(found.bytes * 1e9 / found.total_ns)} over the time")
    versus = _versus(shown, other, lambda figures: figures.bytes, units.size)
    least = "at least " if found.unknown_bytes else ""
    tip = f"{least}{found.bytes:,} bytes: inputs, outputs and listed weights of each layer once, without padding"
    return Said(f"{least}{units.size(found.bytes)}", _notes(versus, notes), "modelled", tip)


def _precision(found: LayerFigures) -> Said:
    total = sum(found.by_precision.values())
    if not total or set(found.by_precision) == {UNKNOWN}:
        return Said(UNKNOWN, ("Names tell no precision",), "", "")
    parts = [f"{name} {units.share(part, total)}" for name, part in found.by_precision.items()]
    timed = found.total_ns is not None
    basis = "share of the time" if timed else "share of the layers, no times"
    exact = [
        f"{name}: {f'{part:,.0f} ns' if timed else _counted(round(part), 'layer')}"
        for name, part in found.by_precision.items()
    ]
    return Said(parts[0], (" · ".join(parts[1:]) or "nothing else",), basis, "\n".join(exact))


def _versus(
    shown: LayersOf,
    other: LayersOf | None,
    figure: Callable[[LayerFigures], float | None],
    words: Callable[[float], str],
) -> list[str]:
    """What it is beside the other engine."""
    if other is None:
        return []
    mine, theirs = figure(shown.figures), figure(other.figures)
    if mine is None or theirs is None:
        return []
    change = f" ({(mine - theirs) / theirs:+.1%})".replace("-", "−").replace("%", " %") if theirs else ""
    return [f"{words(theirs)} in {other.engine.name}{change}", f"other: {words(theirs)}{change}"]


def _notes(versus: list[str], notes: list[str]) -> tuple[str, ...]:
    """Lines from long to short: as much as there is room for, the comparison first."""
    said = " · ".join(notes)
    lines = [" · ".join(part for part in (each, said) if part) for each in versus]
    fewer = [" · ".join(notes[:count]) for count in range(len(notes), 0, -1)] if not versus else []
    return tuple(dict.fromkeys([*lines, *versus, *fewer])) or ("",)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"
