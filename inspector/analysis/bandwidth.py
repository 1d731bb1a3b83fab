"""HBM bandwidth, measured: read and write as a share of the peak, from whichever counters the trace holds.

A sample tells the mean since the sample before it (that is how Nsight's GPU metrics, NVML's GPM and DCGM make theirs),
so the first one tells nothing, and what lies between two samples is only known as their mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]

# What the sources call them: Nsight (both layouts), CUPTI, GPM as our own recorder names it, DCGM.
_READ = re.compile(r"DRAM Read (?:Bandwidth|Throughput)|dram__read_throughput", re.IGNORECASE)
_WRITE = re.compile(r"DRAM Write (?:Bandwidth|Throughput)|dram__write_throughput", re.IGNORECASE)
_BOTH = re.compile(r"HBM read and write|DRAM (?:Bandwidth|Active)\b|dram__throughput|PROF_DRAM_ACTIVE", re.IGNORECASE)


@dataclass(frozen=True)
class Rate:
    """A counter as what it was between its samples: `share` (0 to 1) holds over (time[i - 1], time[i]]; ns, float64."""

    time: Int
    share: Float

    @property
    def spacing_ns(self) -> int:
        """The median distance of samples, ns; 0 with fewer than two."""
        return int(np.median(np.diff(self.time))) if len(self.time) > 1 else 0

    @cached_property
    def _total(self) -> Float:
        """The share summed over time up to each sample, ns: what any mean is a difference of."""
        return np.concatenate([[0.0], np.cumsum(self.share[1:] * np.diff(self.time))])

    def means(self, start: Int, end: Int) -> Float:
        """The mean share over each [start, end), float64; NaN where no sample tells of any of it."""
        if len(self.time) < 2:
            return np.full(len(start), np.nan)
        low, high = np.clip(start, self.time[0], self.time[-1]), np.clip(end, self.time[0], self.time[-1])
        length = high - low
        sums = np.interp(high, self.time, self._total) - np.interp(low, self.time, self._total)
        means: Float = np.divide(sums, length, out=np.full(len(start), np.nan), where=length > 0)
        return means

    def mean(self, start: int, end: int) -> float:
        """The mean share over [start, end); NaN where no sample tells of any of it."""
        return float(self.means(np.array([start]), np.array([end]))[0])


@dataclass(frozen=True)
class Bandwidth:
    """The bandwidth of one device (row of devices): measured.

    `read` and `write` where they are counted apart, `both` always. `peak` in bytes/s, -1 where the trace does not say.
    """

    device: int
    peak: int
    both: Rate
    read: Rate | None
    write: Rate | None

    def bytes_per_s(self, share: float) -> float:
        """A share of the peak in bytes/s; NaN where the peak is not known."""
        return share * self.peak if self.peak > 0 else float("nan")


@dataclass(frozen=True)
class Bandwidths:
    """All devices that have counters of their memory."""

    devices: tuple[Bandwidth, ...]

    def of(self, device: int) -> Bandwidth | None:
        """That of a row of devices."""
        return next((found for found in self.devices if found.device == device), None)

    @classmethod
    def build(cls, trace: Trace) -> Bandwidths:
        """Look for the counters by their names."""
        found = (_bandwidth(trace, device) for device in range(len(trace["devices"])))
        return cls(tuple(each for each in found if each is not None))


def _bandwidth(trace: Trace, device: int) -> Bandwidth | None:
    read, write = (_rate(trace, device, spelling) for spelling in (_READ, _WRITE))
    both = _rate(trace, device, _BOTH)
    if read is not None and write is not None and (both is None or both.spacing_ns > read.spacing_ns > 0):
        both = _sum(read, write)  # the finer one
    if both is None:
        return None
    peak = int(trace["devices"].get("bandwidth")[device])
    return Bandwidth(device, peak if peak > 0 else -1, both, read, write)


def _rate(trace: Trace, device: int, spelling: re.Pattern[str]) -> Rate | None:
    series, counters = trace["series"], trace["counters"]
    for row in np.flatnonzero(series["device"] == device).tolist():
        unit = trace.names[int(series["unit"][row])] if series["unit"][row] >= 0 else ""
        if not unit.startswith("%") or not spelling.search(trace.names[int(series["name"][row])]):
            continue
        mine = np.flatnonzero((counters["series"] == row) & np.isfinite(counters["value"]))
        if len(mine):
            return Rate(counters["time"][mine], counters["value"][mine] / 100)
    return None


def _sum(first: Rate, second: Rate) -> Rate:
    """Two rates as one, between all of their samples."""
    time = np.union1d(first.time, second.time)
    starts, ends = time[:-1], time[1:]
    share = first.means(starts, ends) + second.means(starts, ends)
    known = np.isfinite(share)
    # The first sample tells nothing, so the first one kept is where the first known span begins.
    if not known.any():
        return Rate(time[:0], np.empty(0))
    first_known = int(np.flatnonzero(known)[0])
    last = int(np.flatnonzero(known)[-1])
    return Rate(time[first_known : last + 2], np.concatenate([[0.0], share[first_known : last + 1]]))
