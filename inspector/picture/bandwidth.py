"""The memory bandwidth view as arrays: what each strip shows in every pixel column, and the figures above them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector import units
from inspector.analysis.bandwidth import Bandwidth, Bandwidths, Rate
from inspector.analysis.iterations import Iterations
from inspector.picture.curves import CounterSamples, Samples, curve
from inspector.picture.modelled import Least, LeastFigures, least, least_figures
from inspector.picture.viewport import Grid
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

# Strips beside the bandwidth: the counters that belong together, and their units. The first that fits takes a counter.
_GROUPS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    ("Compute", ("%",), re.compile(r"SMs? Active|SM Issue|Tensor|GR Active|SM occupancy", re.IGNORECASE)),
    ("Memory in use", ("bytes",), re.compile(r"memory in use", re.IGNORECASE)),
    ("Clocks", ("Hz",), re.compile(r"clock(?! limited)", re.IGNORECASE)),
    ("Power", ("W",), re.compile(r"power$|power draw", re.IGNORECASE)),
    ("Links", ("%", "bytes/s"), re.compile(r"PCIe|NVLink|C2C", re.IGNORECASE)),
)


@dataclass(frozen=True)
class Layer:
    """One counter of a strip: lowest and highest value in each pixel column (NaN none), and its samples for the tip.

    The unit of the strip is `scale` times that of the samples. A `stacked` layer stands on the one before it.
    """

    name: str
    low: Float
    high: Float
    samples: Samples
    scale: float = 1.0
    stacked: bool = False


@dataclass(frozen=True)
class Strip:
    """Counters on one scale from 0 to `top`, in `unit`."""

    title: str
    unit: str
    top: float
    layers: tuple[Layer, ...]


@dataclass(frozen=True)
class Bars:
    """The mean share of the peak per iteration: its span, the share (NaN unknown), its kind and number, and the least
    that it must move.

    Where iterations are narrower than half a pixel, each bar is the one with the highest share of those that begin in
    its pixel column (where none is measured, with the highest modelled rate), `of` how many, and from `start` to `end`
    is that column.
    """

    start: Int
    end: Int
    share: Float
    kind: tuple[str, ...]
    number: Int
    of: Int
    least: Least

    @property
    def top_rate(self) -> float:
        """The highest modelled rate among them, bytes/s; 0 where none is known."""
        return float(np.fmax.reduce(self.least.rate, initial=0.0))


@dataclass(frozen=True)
class BandwidthPicture:
    """All of it, for `window` on `width` columns. `scope` is what the figures are of, `basis` what they rest on."""

    window: Window
    width: int
    bandwidth: Bandwidth | None
    strips: tuple[Strip, ...]
    bars: Bars
    scope: Window
    share: float
    read: float
    write: float
    covered_ns: int
    basis: str
    peak: int
    least: LeastFigures


def bandwidth_picture(trace: Trace, device: int, window: Window, chosen: Window | None, width: int) -> BandwidthPicture:
    """The strips of a row of devices in `window`; figures over `chosen`, or the whole trace where that is None."""
    width = max(width, 1)
    scope = chosen or trace.whole
    found = trace.index(Bandwidths).of(device)
    peak = max(int(trace["devices"].get("bandwidth")[device]), -1)
    edges = np.linspace(window.start, window.end, width + 1).astype(np.int64)
    strips: list[Strip] = []
    if found is not None:
        strips.append(_memory(found, edges))
    strips += _others(trace, device, window, width)
    nothing = float("nan")
    return BandwidthPicture(
        window,
        width,
        found,
        tuple(strips),
        _bars(trace, found, peak, window, width),
        scope,
        found.both.mean(scope.start, scope.end) if found else nothing,
        found.read.mean(scope.start, scope.end) if found and found.read else nothing,
        found.write.mean(scope.start, scope.end) if found and found.write else nothing,
        _covered(found.both, scope) if found else 0,
        trace.info.basis,
        peak,
        least_figures(trace, peak, scope),
    )


def _memory(found: Bandwidth, edges: Int) -> Strip:
    layers = []
    parts = (
        [("read", found.read), ("write", found.write)]
        if found.read and found.write
        else [("read and write", found.both)]
    )
    for at, (name, rate) in enumerate(parts):
        assert rate is not None
        mean = rate.means(edges[:-1], np.maximum(edges[1:], edges[:-1] + 1)) * 100
        samples = Samples(rate.time, rate.share, 0.0, 1.0)
        layers.append(Layer(f"HBM {name}", mean, mean, samples, scale=100.0, stacked=at > 0))
    return Strip("HBM bandwidth", "% of peak", 100.0, tuple(layers))


def _others(trace: Trace, device: int, window: Window, width: int) -> list[Strip]:
    """A strip for each group and unit: what is measured differently shares no scale."""
    series, every = trace["series"], trace.index(CounterSamples)
    found: dict[tuple[str, str], list[Layer]] = {}
    step = max(window.length // width, 1)
    grid = Grid(window.start, step, -(-window.length // step))
    for row in np.flatnonzero(series["device"] == device).tolist():
        name = trace.names[int(series["name"][row])]
        unit = trace.names[int(series["unit"][row])] if series["unit"][row] >= 0 else ""
        unit, scale = ("Hz", 1e6) if unit == "MHz" else (unit, 1.0)
        title = next((title for title, units, spelling in _GROUPS if unit in units and spelling.search(name)), "")
        samples = every.of(row)
        if title and len(samples.time):
            made = curve(samples, grid)
            layer = Layer(name, made.low * scale, made.high * scale, samples, scale)
            found.setdefault((title, unit), []).append(layer)
    order = [title for title, _, _ in _GROUPS]
    return [
        Strip(title, unit, _top(layers, unit), tuple(layers))
        for (title, unit), layers in sorted(found.items(), key=lambda each: order.index(each[0][0]))
    ]


def _top(layers: list[Layer], unit: str) -> float:
    return 100.0 if unit.startswith("%") else max(layer.samples.top * layer.scale for layer in layers) or 1.0


def _bars(trace: Trace, found: Bandwidth | None, peak: int, window: Window, width: int) -> Bars:
    iterations = trace.index(Iterations)
    first = int(np.searchsorted(iterations.end, window.start, "right"))
    last = max(int(np.searchsorted(iterations.start, window.end)), first)
    rows = np.arange(first, last)
    start, end, of = iterations.start[rows], iterations.end[rows], np.ones(len(rows), np.int64)
    share = found.both.means(start, end) if found else np.full(len(rows), np.nan)
    modelled = least(trace, peak, first, last)
    if len(rows) > 2 * width:
        column = np.clip((start - window.start) * width // max(window.length, 1), 0, width - 1)
        # Ascending by column, then by share, what is not known first: the last of each column has the highest.
        highest_first = share if found is not None else modelled.rate
        order = np.lexsort((np.where(np.isfinite(highest_first), highest_first, -1.0), column))
        highest = np.flatnonzero(np.diff(column[order], append=width))
        chosen = order[highest]
        rows, share, column, modelled = rows[chosen], share[chosen], column[chosen], modelled.take(chosen)
        of = np.diff(highest, prepend=-1)
        start = window.start + column * window.length // width
        end = window.start + (column + 1) * window.length // width
    kinds = tuple(iterations.kind(row) for row in rows.tolist())
    return Bars(start, end, share, kinds, iterations.number[rows], of, modelled)


def _covered(rate: Rate, scope: Window) -> int:
    if len(rate.time) < 2:
        return 0
    return max(min(scope.end, int(rate.time[-1])) - max(scope.start, int(rate.time[0])), 0)


def value_text(value: float, unit: str) -> str:
    """A value of a strip for people: '63.5 %', '1.98 GHz', '512 W', '100 GB'."""
    if not np.isfinite(value):
        return "–"
    if unit.startswith("%"):
        return f"{units.three_digits(value)} %"
    if unit == "bytes":
        return units.size(value)
    if unit == "bytes/s":
        return units.rate(value)
    if unit == "Hz":
        return f"{units.count(value)}Hz".replace(" GHz", " GHz")
    return f"{units.three_digits(value)} {unit}".rstrip()
