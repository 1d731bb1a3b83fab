"""What the rows of an export refer to: strings, processes, threads, GPUs and streams, as rows and names of ours."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from inspector.readers.nsys.gpus import Gpus
from inspector.readers.nsys.metadata import Metadata
from inspector.readers.nsys.source import PROCESS_BITS, Batch, Codes, Source, records
from inspector.trace.builder import Builder

Int32 = npt.NDArray[np.int32]

_24_BITS = 0xFFFFFF
_VERSION = re.compile(r"_v\d+$")
_NO_STREAM = (0xFFFFFFFF, -1)
_UNKNOWN = -1


class Context:
    """Looks up, and adds to the builder on first use; for one thread only.

    Processes are keyed by the whole globalPid (host, virtual machine and process), threads by the whole globalTid.
    `strings` is StringIds, `ranks` gives the rank of a process by its globalPid.
    """

    def __init__(self, source: Source, builder: Builder, strings: Mapping[int, str], ranks: Mapping[int, int]) -> None:
        self.builder = builder
        self.gpus = Gpus(source)
        self._source = source
        self._ranks = ranks
        self._strings = strings
        self._names: dict[tuple[int | None, bool], int] = {}
        self._processes: dict[int | None, int] = {}
        self._threads: dict[int | None, int] = {}
        self._owners: dict[int, int] = {}
        self._pids: dict[int, int] = {}
        self._contexts: dict[tuple[int, int | None], int | None] = {}
        self._told = {
            (pid, context): device
            for table in ("TARGET_INFO_CUDA_NULL_STREAM", "TARGET_INFO_CUDA_CONTEXT_INFO")
            for pid, context, device in records(source, table, "processId", "contextId", "deviceId")
        }
        self._used: set[tuple[int, int]] = set()
        self._described = {
            global_pid: (pid, str(name or ""))
            for global_pid, pid, name in records(source, "PROCESSES", "globalPid", "pid", "name")
            if global_pid is not None
        }
        # A thread that was renamed has several rows; the last one holds.
        self._thread_names = {tid: name for name, tid in records(source, "ThreadNames", "nameId", "globalTid")}

    def string(self, id_: int | None) -> str:
        """Text of a row of StringIds; '' for none."""
        text = None if id_ is None else self._strings.get(id_)
        if text is not None:
            return text
        if not id_:
            return ""
        self.builder.quality.add("absent", "names that this export does not hold are shown by their number")
        return f"string {id_}"

    def add_name(self, text: str) -> int:
        """Name id of `text`."""
        return self.builder.names.add(text)

    def process(self, global_id: int | None) -> int:
        """Row of processes for a globalPid or a globalTid of it; for None the only process that there is, else -1."""
        key = None if global_id is None else global_id & PROCESS_BITS
        row = self._processes.get(key)
        if row is not None:
            return row
        if key is None:
            row = self._only_process()
        else:
            signed = key - (1 << 64) if key >> 63 else key
            pid, name = self._described.get(signed, (None, ""))
            if pid is None:
                pid = key >> 24 & _24_BITS
            name = name or self.string(self._thread_names.get(signed | pid))
            number = pid
            if self._owners.setdefault(pid, key) != key:
                text = "process ids that two machines share: the second one's carries the number of its machine"
                self.builder.quality.add("assumed", text)
                number = key >> 24
            row = self.builder.process(number, name, self._ranks.get(signed, -1))
            self._pids[row] = pid
        self._processes[key] = row
        return row

    def _only_process(self) -> int:
        """For exports in which device records do not name their process."""
        owners = {
            value & PROCESS_BITS
            for batch in self._source.batches("CUPTI_ACTIVITY_KIND_RUNTIME", ["globalTid"])
            for value in batch.codes("globalTid").values
            if value is not None
        }
        if len(owners) != 1:
            return _UNKNOWN
        self.builder.quality.add(
            "assumed", "device records that name no process belong to the only one with CUDA calls"
        )
        return self.process(owners.pop())

    def thread(self, global_tid: int | None) -> int:
        """Row of threads for a globalTid; -1 for None."""
        row = self._threads.get(global_tid)
        if row is not None:
            return row
        row = _UNKNOWN
        if global_tid is not None:
            name = self.string(self._thread_names.get(global_tid))
            row = self.builder.thread(self.process(global_tid), global_tid & _24_BITS, name)
        self._threads[global_tid] = row
        return row

    def device(self, global_pid: int | None, device: int | None) -> int:
        """Row of devices for the device number of a process; one numbered -1 where the export does not say."""
        number, gpu = self.gpus.find(self._pids.get(self.process(global_pid)), _UNKNOWN if device is None else device)
        row = self.builder.device(number, gpu.name, gpu.memory, gpu.bandwidth, gpu.sm_count)
        self._used.add((self.process(global_pid), row))
        return row

    def gpu(self, number: int) -> int:
        """Row of devices for the number of a GPU in the machine."""
        number, gpu = self.gpus.of_machine(number)
        return self.builder.device(number, gpu.name, gpu.memory, gpu.bandwidth, gpu.sm_count)

    def series(self, name: str, unit: str, device: int) -> int:
        """Row of series."""
        return self.builder.series(name, unit, device)

    def finish(self, metadata: Metadata) -> None:
        """What can be said only once all is read: the rank of the command's process, and doubts about devices."""
        users = {key for key, _ in self._used}
        if metadata.command_rank and len(users) == 1:
            variable, rank = metadata.command_rank
            (process,) = users
            if process in self._pids and not self._ranks:
                self.builder.process(self._pids[process], rank=rank)
                self.builder.quality.add("assumed", f"the rank is that of the command's environment ({variable})")
        if self.gpus.clash:
            text = "one device number is several GPUs in several processes: GPUs have their number in the machine"
            self.builder.quality.add("assumed", text)
        elif not self.gpus.mapped and len({device for _, device in self._used}) < len(self._used):
            text = "a device number that several processes use is taken as one GPU: this export does not say"
            self.builder.quality.add("assumed", text)

    def threads(self, batch: Batch, column: str = "globalTid") -> Int32:
        """Rows of threads, int32."""
        return mapped(batch.codes(column), self.thread)

    def processes(self, batch: Batch) -> Int32:
        """Rows of processes by globalPid, int32."""
        return mapped(batch.codes("globalPid"), self.process)

    def devices(self, batch: Batch) -> Int32:
        """Rows of devices by (globalPid, deviceId), int32."""
        return combined([batch.codes(name) for name in ("globalPid", "deviceId")], lambda key: self.device(*key))

    def streams(self, batch: Batch, work: bool = True) -> Int32:
        """Rows of streams, int32. `work` has a stream, numbered -1 where the export names none; else that is -1.

        What is no work names device 0 whatever its device is: its context tells, by the work that ran in it.
        """

        def stream(key: tuple[int | None, ...]) -> int:
            global_pid, context, device, number = key
            process = self.process(global_pid)
            if work:
                self._contexts[process, context] = device
                number = _UNKNOWN if number is None else number
            elif number is None or number in _NO_STREAM:
                return _UNKNOWN
            else:
                told = self._contexts.get(
                    (process, context), self._told.get((self._pids.get(process), context), device)
                )
                if told != device:
                    text = f"{batch.table}: streams whose device is that of their context, not the one in the record"
                    self.builder.quality.add("repaired", text)
                    device = told
            name = "no stream" if number == _UNKNOWN else ""
            return self.builder.stream(process, self.device(global_pid, device), number, name)

        columns = ("globalPid", "contextId", "deviceId", "streamId")
        return combined([batch.codes(name) for name in columns], stream)

    def names(self, batch: Batch, *columns: str, versioned: bool = False) -> Int32:
        """Name ids of the first of `columns` (of string ids) that names something; `versioned` drops '_v7000'."""
        names = np.full(len(batch), _UNKNOWN, np.int32)
        for column in columns:
            missing = names < 0
            if not missing.any():
                break
            found = mapped(batch.codes(column), lambda id_: self._name(id_, versioned))
            names = np.where(missing, found, names)
        names[names < 0] = self.add_name("")
        return names

    def _name(self, id_: int | None, versioned: bool) -> int:
        name = self._names.get((id_, versioned))
        if name is None:
            text = self.string(id_)
            name = self.add_name(_VERSION.sub("", text) if versioned else text) if text else _UNKNOWN
            self._names[id_, versioned] = name
        return name

    def text_names(self, batch: Batch, text: str, id_column: str) -> Int32:
        """Name ids of the text itself or else of the string that `id_column` refers to."""
        codes = batch.text_codes(text)
        names = np.array([_UNKNOWN if t is None else self.add_name(t) for t in codes.values], np.int32)[codes.rows]
        missing = names < 0
        if missing.any():
            names[missing] = self.names(batch, id_column)[missing]
        return names


def mapped(codes: Codes[int | None], of: Callable[[int | None], int]) -> Int32:
    """`of` for every row, called once for every distinct value; int32."""
    table = np.array([of(value) for value in codes.values], np.int32)
    return np.full(len(codes.rows), table[0]) if len(table) == 1 else table[codes.rows]


def combined(columns: Sequence[Codes[int | None]], of: Callable[[tuple[int | None, ...]], int]) -> Int32:
    """`of` the values of several columns for every row, called once for every combination that occurs; int32."""
    # A column with one value only adds nothing to the combinations.
    several = [column for column in columns if len(column.values) > 1]
    code = np.zeros(len(columns[0].rows), np.int64) if not several else several[0].rows
    for column in several[1:]:
        code = code * len(column.values) + column.rows
    size = math.prod(len(column.values) for column in columns)

    def values(key: int) -> tuple[int | None, ...]:
        found: list[int | None] = []
        for column in reversed(columns):
            key, row = divmod(key, len(column.values))
            found.append(column.values[row])
        return tuple(reversed(found))

    if size == 1:
        return np.full(len(code), of(values(0)), np.int32)
    if size <= len(code) + 1024:
        present = np.flatnonzero(np.bincount(code, minlength=size))
        table = np.empty(size, np.int32)
        table[present] = [of(values(key)) for key in present.tolist()]
    else:
        present, code = np.unique(code, return_inverse=True)
        table = np.array([of(values(key)) for key in present.tolist()], np.int32)
    found: Int32 = table[code]
    return found
