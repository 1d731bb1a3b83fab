"""Counter events and the profiler's memory events: samples, and memory taken and given back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inspector.readers.kineto.event import Event, Values, known_args
from inspector.readers.kineto.host import Host
from inspector.readers.kineto.numbers import Int, exact_ns
from inspector.trace.builder import Builder

MEMORY = "[memory]"
# torch's numbers of the types of device that are GPUs: CUDA (ROCm calls itself so too), HIP, XPU.
_GPUS = frozenset((1, 6, 12))
_PAGEABLE, _DEVICE, _UNKNOWN = 1, 3, 0


class Counters:
    """Adds rows to the builder as events come."""

    def __init__(self, builder: Builder, host: Host) -> None:
        self._builder = builder
        self._host = host
        self._not_numbers = 0

    def memory(self, events: Sequence[Event], time: Int) -> None:
        """Instants named [memory]: an allocation each, and samples of the totals where they are told."""
        self._host.seen(time)
        numbers, known = self._host.numbers, known_args(events)
        kinds = numbers([args.device_type for args in known], -1).tolist()
        places = numbers([args.device_id for args in known], -1, 2**31).tolist()
        on_gpu = [kind in _GPUS and place >= 0 for kind, place in zip(kinds, places, strict=True)]
        rows = {place: self._builder.device(place) for place, gpu in zip(places, on_gpu, strict=True) if gpu}
        devices = [rows[place] if gpu else -1 for place, gpu in zip(places, on_gpu, strict=True)]
        processes = [self._host.threads.process(event.pid) for event in events]
        address = [args.address for args in known]
        self._builder.add(
            "allocations",
            time=time,
            process=processes,
            device=devices,
            address=numbers(address).view(np.uint64),
            bytes=numbers([args.memory_bytes for args in known]),
            kind=[
                _DEVICE if gpu else _PAGEABLE if kind == 0 else _UNKNOWN
                for gpu, kind in zip(on_gpu, kinds, strict=True)
            ],
        )
        for name, totals in (
            ("memory allocated", [args.allocated for args in known]),
            ("memory reserved", [args.reserved for args in known]),
        ):
            told = [row for row, total in enumerate(totals) if total is not None]
            series = {(devices[row], processes[row]) for row in told}
            found = {key: self._builder.series(name, "bytes", *key) for key in sorted(series)}
            self._builder.add(
                "counters",
                time=time[told],
                series=np.array([found[devices[row], processes[row]] for row in told], np.int32),
                value=numbers([totals[row] for row in told]).astype(np.float64),
            )

    def counters(self, events: Sequence[Values]) -> None:
        """Counter events: one series for each argument."""
        times = exact_ns([bytes(event.ts) for event in events])
        rows: tuple[list[int], list[int], list[float]] = ([], [], [])
        for time, wrong, event in zip(times.ns.tolist(), times.unreadable.tolist(), events, strict=True):
            values = event.args if isinstance(event.args, dict) else {}
            process = self._host.threads.process(event.pid)
            for key, value in values.items():
                if wrong or not isinstance(value, int | float):
                    self._not_numbers += 1
                    continue
                name = str(event.name) if len(values) == 1 else f"{event.name} {key}"
                rows[0].append(time)
                rows[1].append(self._builder.series(name, process=process))
                rows[2].append(float(value))
        if rows[0]:
            self._host.seen(np.array(rows[0]))
            self._builder.add("counters", time=rows[0], series=rows[1], value=rows[2])

    def finish(self) -> None:
        """Note what could not be read."""
        if self._not_numbers:
            text = "values of counters that are no number, or have no time"
            self._builder.quality.add("invalid", text, self._not_numbers)
