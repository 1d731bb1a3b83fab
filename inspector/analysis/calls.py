"""What a host call or range means for the GPU: told from its name, for CUDA and HIP alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.trace.growing import GrowingArray
from inspector.trace.links import Links

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

CALL_KINDS: tuple[str, ...] = ("sync", "allocation", "module load", "launching", "other")
SYNC, ALLOCATION, MODULE, LAUNCHING, OTHER_CALL = range(5)

_RULES = (
    # Before "launching": the plain copies block the thread until the data has moved.
    (SYNC, re.compile(r"Synchronize|^(cuda|hip)Memcpy(2D|3D|Peer|ToSymbol|FromSymbol|ToArray|FromArray|WithStream)*$")),
    (SYNC, re.compile(r"^cuMemcpy(?!\w*Async)|^hipMemcpy(?!\w*Async)|^cudaMemcpy(?!\w*Async)")),
    (
        MODULE,
        re.compile(r"^cu(Module|Library|Link)|^hipModule(Load|Unload|GetFunction)|^cuda(Library|GraphInstantiate)"),
    ),
    (MODULE, re.compile(r"Graph(Instantiate|ExecUpdate|ExecKernelNodeSetParams|Upload)|(Begin|End)Capture")),
    (MODULE, re.compile(r"RegisterFatBinary|RegisterFunction|^nvrtc|^hiprtc|^cuGetProcAddress$")),
    (
        ALLOCATION,
        re.compile(
            r"^(cuda|hip)(Malloc|Free|Host(Alloc|Malloc|Free|Register|Unregister|GetDevicePointer)|MemPool|ExtMalloc)"
            r"|^cuMem(Alloc|Free|Host(Alloc|Register|Unregister)|Create|Release|Map|Unmap|SetAccess|Address|Pool)"
            r"|^hipMem(Create|Release|Map|Unmap|SetAccess|Address|Pool|Alloc)|^cudaMem(Create|Map|Unmap|Address)"
        ),
    ),
    (LAUNCHING, re.compile(r"Launch|Mem(cpy|set)\w*|GraphLaunch")),
)
# Calls that hand the processor over until something happens elsewhere.
_BLOCKING = re.compile(
    r"futex|cond_\w*wait|poll|select|sem_\w*wait|semop|sleep|mutex_\w*lock|rwlock_\w*lock|_join|waitpid|wait4|waitid"
    r"|accept|recv|barrier_wait|msgrcv|sigwait|flock",
    re.IGNORECASE,
)
_GC = re.compile(r"^(python[ _-]?)?gc\b|garbage[ _-]?collect|^GC[: _]", re.IGNORECASE)
_REQUEST_WAIT = re.compile(
    r"^_?fetch_new_requests|^_?fetch_and_activate_new_requests|^_?get_from_(waiting_|request_)?queue"
    r"|request_queue[._]get|^_?wait_for_(new_)?requests?\b|await_new_requests|^paused by the user$"
)
PAUSED = "paused by the user"
"""The range in which the engine stands still because the user said so."""
# Ranges in which the probe itself works on a thread of the program (probes/inprocess).
_OWN_PROBE = "inflight probe"
# TensorRT-LLM's sync_previous_sampler_event is none of them: it waits for an event of the rank's own GPU.
_PEER_WAIT = re.compile(
    r"^(receive|wait for stages|recv_schedule_from_prev_pp|recv_sample_state|wait_on_pp_send_handles"
    r"|wait_send_schedule_handler)$"
)


def call_kind(name: str) -> int:
    """Index into CALL_KINDS for the name of a runtime or driver call."""
    for kind, rule in _RULES:
        if rule.search(name):
            return kind
    return OTHER_CALL


def is_blocking(name: str) -> bool:
    """True for an operating system call that waits for something outside the thread."""
    return _BLOCKING.search(name) is not None


def is_gc(name: str) -> bool:
    """True for a range that marks the interpreter's garbage collection."""
    return _GC.search(name) is not None


def is_request_wait(name: str) -> bool:
    """True for the range in which the engine takes requests from its queue, and waits where there is none, and for the
    one in which it was told to stand still."""
    return _REQUEST_WAIT.search(name) is not None


def is_peer_wait(name: str) -> bool:
    """True for the range in which a pipeline stage waits for another, for its input or until that has its output."""
    return _PEER_WAIT.search(name) is not None


def is_own_probe(name: str) -> bool:
    """True for a range in which this program's own probe kept the thread from its work."""
    return name.startswith(_OWN_PROBE)


def by_name(names: Sequence[str], used: npt.NDArray[np.int32], rule: object) -> npt.NDArray[np.int8]:
    """`rule(text)` as int8 for every name id that occurs in `used`, 0 elsewhere; one more entry answers for -1."""
    answers = np.zeros(len(names) + 1, np.int8)
    for name in np.flatnonzero(np.bincount(used + 1, minlength=1)[1:]).tolist():
        answers[name] = rule(names[name])  # type: ignore[operator]
    return answers


@dataclass(frozen=True)
class CallKinds:
    """`of_row` is the CALL_KINDS index of every row of host_calls, int8.

    A copy to pageable host memory that is asynchronous by name returns only when the data has arrived: it is a sync.
    """

    of_row: npt.NDArray[np.int8]
    revision: int = 0
    growing: GrowingArray | None = field(default=None, compare=False, repr=False)

    @classmethod
    def build(cls, trace: Trace) -> CallKinds:
        """Match each distinct name once."""
        return cls(_kinds_of_calls(trace), trace["host_calls"].revision)

    @classmethod
    def extend(cls, old: CallKinds, trace: Trace) -> CallKinds:
        """New rows only, unless copies of pageable memory may change what earlier ones are."""
        calls, copies = trace["host_calls"], trace["memcpys"]
        if calls.revision != old.revision or ("pageable" in copies and copies["pageable"].any()):
            return cls.build(trace)
        names = calls["name"][len(old.of_row) :]
        kinds = by_name(trace.names.texts, names, call_kind)[names]
        growing = old.growing or GrowingArray("int8").extended(0, old.of_row)[0]
        growing, of_row = growing.extended(len(old.of_row), kinds)
        return cls(of_row, calls.revision, growing)


def _kinds_of_calls(trace: Trace) -> npt.NDArray[np.int8]:
    calls = trace["host_calls"]
    kinds = by_name(trace.names.texts, calls["name"], call_kind)[calls["name"]]
    copies = trace["memcpys"]
    if "pageable" in copies and copies["pageable"].any():
        to_host = by_name(trace.names.texts, copies["name"], _is_to_host)[copies["name"]]
        launch = trace.index(Links).launch["memcpys"]
        kinds[launch[(copies["pageable"] > 0) & (to_host > 0) & (launch >= 0)]] = SYNC
    return kinds


def _is_to_host(name: str) -> bool:
    return "DtoH" in name or "Device -> Pageable" in name
