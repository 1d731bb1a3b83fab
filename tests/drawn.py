"""A trace as text, one character per microsecond: what a test means is seen at a glance.

```
  gpu 0 stream 7   ...AAAA.....BB       L launch (links in order), S synchronise
  thread 1 calls   L....SSSSSL...
  expected                sssoo
```

All rows begin in the column where the leftmost one does. `.` is nothing; one letter repeated is one record, so that
neighbours need different letters (`Ll` are two launches). A row ends at its first blank: the rest is a remark, as are
lines that are no row. Rows, with `process N` after any number where it is not 1:

    gpu D stream S [context C]              A-Z kernels, a-z copies, 0-9 memory sets, # a graph recorded as a whole
    gpu D stream S [context C] graph N      nodes of the Nth graph launch (G) of the process
    gpu D stream S waits | records          A-Z: the stream waits for that event; the event is recorded
    thread T calls                          the letters of CALLS, capital or not
    thread T launches                       A-Z, a-z, 0-9: the call that launched that letter (nth run, nth work)
    thread T nvtx | operators               A-Z ranges, named by RANGES or the letter
    thread T os | profiler                  O a blocking call, P the profiler at work
    thread T scheduled                      + switched on, - switched off
    iterations                              c context only, g generation only, m mixed, e empty; each run one iteration
    expected [gpu D]                        a-z: what a test expects there, given back as slices of trace time
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from inspector.trace.builder import Builder
from inspector.trace.trace import Trace, TraceInfo

CALLS: Mapping[str, str] = {
    "L": "cudaLaunchKernel",
    "G": "cudaGraphLaunch",
    "C": "cudaMemcpyAsync",
    "B": "cudaMemcpy",
    "Z": "cudaMemsetAsync",
    "S": "cudaStreamSynchronize",
    "D": "cudaDeviceSynchronize",
    "E": "cudaEventSynchronize",
    "M": "cudaMalloc",
    "F": "cudaFree",
    "J": "cuModuleLoadData",
    "I": "cudaGraphInstantiate",
    "W": "cudaStreamWaitEvent",
    "R": "cudaEventRecord",
    "Q": "cudaEventQuery",
}
RANGES: Mapping[str, str] = {"G": "gc collect", "Q": "_fetch_new_requests"}
OS_CALLS: Mapping[str, str] = {"O": "futex", "P": "poll", "R": "read"}
_STARTS = {"kernels": "L", "memcpys": "CB", "memsets": "Z", "graphs": "G"}
_ROW = re.compile(r"\s*((?:gpu|thread|iterations|expected)\b(?: \S+)*)(\s{2,})(\S.*)")


class Slice(NamedTuple):
    """What an `expected` row says of [start, end), ns of trace time."""

    start: int
    end: int
    letter: str


@dataclass(frozen=True)
class Drawn:
    """The trace; `expected` by the number of the gpu; `unit` ns per character; `first` the column of trace time 0."""

    trace: Trace
    expected: dict[int, list[Slice]]
    unit: int
    first: int

    def at(self, column: int) -> int:
        """Trace time of the left edge of a column, ns."""
        return (column - self.first) * self.unit

    def device(self, number: int) -> int:
        """Row of devices for the number of a gpu."""
        return self.trace["devices"]["number"].tolist().index(number)


class _Run(NamedTuple):
    start: int
    end: int
    letter: str


@dataclass
class _Call:
    run: _Run
    thread: int
    name: str
    starts: str  # which letters of _STARTS it counts among, or the letter that it launches after a "="
    correlation: int
    used: bool = False


@dataclass
class _Work:
    table: str
    run: _Run
    stream: int
    context: int
    graph: int = 0
    correlation: int = 0


@dataclass
class _Process:
    row: int
    calls: list[_Call] = field(default_factory=list)
    work: list[_Work] = field(default_factory=list)
    events: list[tuple[str, _Run, int]] = field(default_factory=list)


def draw(
    picture: str,
    *,
    unit: int = 1000,
    kernels: Mapping[str, str] | None = None,
    calls: Mapping[str, str] | None = None,
    ranges: Mapping[str, str] | None = None,
    os_calls: Mapping[str, str] | None = None,
    unlinked: str = "",
    pageable: str = "",
) -> Drawn:
    """The trace that `picture` shows, `unit` ns per character.

    The mappings name letters (work and `launches`, calls, ranges, OS calls) other than by default. Work whose letter
    is in `unlinked` has no launch call; the rest is linked, and a ValueError says when calls and work do not add up.
    Copies whose letter is in `pageable` have a pageable side.
    """
    return _Drawing(
        unit, kernels or {}, {**CALLS, **(calls or {})}, {**RANGES, **(ranges or {})}, {**OS_CALLS, **(os_calls or {})}
    ).read(picture, unlinked, pageable)


class _Drawing:
    def __init__(
        self,
        unit: int,
        kernels: Mapping[str, str],
        calls: Mapping[str, str],
        ranges: Mapping[str, str],
        os_calls: Mapping[str, str],
    ) -> None:
        self.unit = unit
        self.kernels, self.calls, self.ranges, self.os_calls = kernels, calls, ranges, os_calls
        self.builder = Builder()
        self.processes: dict[int, _Process] = {}
        self.expected: dict[int, list[_Run]] = {}
        self.first = 1 << 62

    def read(self, picture: str, unlinked: str, pageable: str) -> Drawn:
        rows = [match for line in picture.splitlines() if (match := _ROW.fullmatch(line))]
        for line in picture.splitlines():
            if re.match(r"\s*(gpu|thread) \d", line) and not _ROW.fullmatch(line):
                raise ValueError(f"two blanks belong before the picture: {line.strip()}")
        if not rows:
            raise ValueError("the picture has no row")
        left = min(match.start(3) for match in rows)
        for match in rows:
            words = match[1].split()
            text = " " * (match.start(3) - left) + match[3].split()[0]
            self._row(words, _runs(text))
        for process in self.processes.values():
            self._link(process, unlinked)
            self._add(process, pageable)
        trace = self.builder.build(TraceInfo(paths=("drawn",), kind="drawn"))
        self.first = trace.info.origin_ns // self.unit
        expected = {
            number: [Slice(*((t - self.first) * self.unit for t in run[:2]), run.letter) for run in runs]
            for number, runs in self.expected.items()
        }
        return Drawn(trace, expected, self.unit, self.first)

    def _row(self, words: list[str], runs: list[_Run]) -> None:
        said = {word: words[at + 1] for at, word in enumerate(words[:-1]) if words[at + 1].isdigit()}
        known = {"gpu", "stream", "context", "graph", "thread", "process"}
        if unknown := {word for word in words[1:-1] if not word.isdigit()} - known:
            raise ValueError(f"{' '.join(words)}: what is {' '.join(unknown)}?")
        if words[0] == "expected":
            self.expected.setdefault(int(said.get("gpu", 0)), []).extend(runs)
            return
        number = int(said.get("process", 1))
        if number not in self.processes:
            self.processes[number] = _Process(self.builder.process(number))
        process = self.processes[number]
        if words[0] == "gpu":
            stream = self.builder.stream(process.row, self.builder.device(int(said["gpu"])), int(said["stream"]))
            if words[-1] in ("waits", "records"):
                process.events += [(words[-1], run, stream) for run in runs]
                return
            if not words[-1].isdigit():
                raise ValueError(f"a gpu row ends with {words[-1]}")
            context, graph = int(said.get("context", 1)), int(said.get("graph", 0))
            process.work += [_Work(_table(run.letter), run, stream, context, graph) for run in runs]
        elif words[0] == "iterations":
            self._iterations(process, runs)
        else:
            self._host(process, self.builder.thread(process.row, int(said["thread"])), words[-1], runs)

    def _host(self, process: _Process, thread: int, kind: str, runs: list[_Run]) -> None:
        times = {"start": self._ns(run.start for run in runs), "end": self._ns(run.end for run in runs)}
        if kind == "calls":
            process.calls += [_Call(run, thread, self.calls[run.letter.upper()], run.letter.upper(), 0) for run in runs]
        elif kind == "launches":
            for run in runs:
                letter = {"kernels": "L", "memcpys": "C", "memsets": "Z"}[_table(run.letter)]
                process.calls.append(_Call(run, thread, self.calls[letter], "=" + run.letter, 0))
        elif kind in ("nvtx", "operators"):
            names = [self.builder.names.add(self.ranges.get(run.letter, run.letter)) for run in runs]
            code = 0 if kind == "nvtx" else 3
            self.builder.add("ranges", **times, thread=thread, name=names, kind=[code] * len(runs), domain=-1)
        elif kind in ("os", "profiler"):
            table = "os_calls" if kind == "os" else "overheads"
            texts = [self.os_calls[run.letter] if kind == "os" else "profiler" for run in runs]
            self.builder.add(table, **times, thread=thread, name=self.builder.names.add_all(texts))
        elif kind == "scheduled":
            on = [int(run.letter == "+") for run in runs]
            self.builder.add("schedulings", time=times["start"], thread=thread, cpu=0, on=on)
        else:
            raise ValueError(f"a thread row ends with {kind}")

    def _iterations(self, process: _Process, runs: list[_Run]) -> None:
        unknown = {
            key: [-1] * len(runs)
            for key in ("paused_requests", "tokens", "used_blocks", "free_blocks", "reused_blocks", "missed_blocks")
        }
        self.builder.add(
            "iterations",
            start=self._ns(run.start for run in runs),
            end=self._ns(run.end for run in runs),
            process=process.row,
            iteration=list(range(len(runs))),
            context_requests=[int(run.letter in "cm") for run in runs],
            generation_requests=[int(run.letter in "gm") for run in runs],
            queued_requests=[0] * len(runs),
            **unknown,
        )

    def _link(self, process: _Process, unlinked: str) -> None:
        process.calls.sort(key=lambda call: (call.run.start, -call.run.end))
        process.work.sort(key=lambda work: work.run.start)
        for number, call in enumerate(process.calls, 1):
            call.correlation = number
        graphs = [call for call in process.calls if call.starts == "G"]
        # Nodes first: a graph recorded as a whole takes a launch that no node row claims.
        for work in sorted(process.work, key=lambda work: work.graph == 0):
            if work.run.letter in unlinked:
                continue
            named = [call for call in process.calls if call.starts == "=" + work.run.letter and not call.used]
            usual = [call for call in process.calls if call.starts in _STARTS[work.table] and not call.used]
            if work.graph:
                call = graphs[work.graph - 1]
            elif named or usual:
                call = (named or usual)[0]
            else:
                raise ValueError(f"nothing launches {work.run.letter} in column {work.run.start}")
            work.correlation, call.used = call.correlation, True
        for call in process.calls:
            if not call.used and (call.starts in "LGCBZ" or call.starts[0] == "="):
                raise ValueError(f"the call in column {call.run.start} launches nothing")

    def _add(self, process: _Process, pageable: str) -> None:
        add, name = self.builder.add, self.builder.names.add
        for call in process.calls:
            start, end = self._ns(call.run[:2])
            add(
                "host_calls",
                start=start,
                end=end,
                thread=call.thread,
                name=name(call.name),
                correlation=call.correlation,
            )
        nodes: dict[int, int] = {}
        for work in process.work:
            nodes[work.graph] = nodes.get(work.graph, 0) + 1
            letter, (start, end) = work.run.letter, self._ns(work.run[:2])
            extra = {"graph": 1} if work.table == "graphs" else {"graph_node": nodes[work.graph] if work.graph else 0}
            if work.table in ("memcpys", "memsets"):
                extra["bytes"] = 1
            if work.table == "memcpys":
                extra["pageable"] = int(letter in pageable)
            default = {"kernels": letter, "memcpys": "Memcpy DtoH", "memsets": "Memset", "graphs": "CUDA graph"}
            add(
                work.table,
                start=start,
                end=end,
                stream=work.stream,
                name=name(self.kernels.get(letter, default[work.table])),
                correlation=work.correlation,
                context=work.context,
                **extra,
            )
        ids = {
            kind: iter([call.correlation for call in process.calls if call.starts == letter])
            for kind, letter in (("waits", "W"), ("records", "R"))
        }
        for kind, run, stream in sorted(process.events, key=lambda event: event[1]):
            start, end = self._ns(run[:2])
            same = {"stream": stream, "correlation": next(ids[kind], 0), "event": ord(run.letter)}
            if kind == "waits":
                add("syncs", start=start, end=end, kind=2, process=process.row, **same)
            else:
                add("event_records", **same, time=start)

    def _ns(self, columns: Iterable[int]) -> list[int]:
        return [column * self.unit for column in columns]


def _runs(text: str) -> list[_Run]:
    return [_Run(*match.span(), match[1]) for match in re.finditer(r"([^.\s])\1*", text)]


def _table(letter: str) -> str:
    if letter == "#":
        return "graphs"
    if letter.isdigit():
        return "memsets"
    return "kernels" if letter.isupper() else "memcpys"
