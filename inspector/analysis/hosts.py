"""Names of what the host did, grouped: an operator with another sequence number is the same operator.

```
aten::addmm, seq = 47595, op_id = 999269     aten::addmm
[Executor] _forward_step 17: 2 ctx reqs      [Executor] _forward_step #: # ctx reqs
FSDP::pre_forward (blocks.11.mlp)            FSDP::pre_forward
torch/nn/module.py(1735): forward            (as it is: a line number tells where)
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.causes import CAUSES, Causes, DeviceSlices, of_host

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

UNMARKED = "unmarked"
_ARGUMENTS = re.compile(r",\s*\w+\s*=\s*[^,]*")
_MODULE = re.compile(r"\s+\((?:\w+\.)*\w*\d\w*(?:\.\w+)*\)$")
_NUMBER = re.compile(r"(?<![\w.(])(?:0x[0-9a-fA-F]+|\d+)(?![\w.)])")


def group_of(name: str) -> str:
    """The name without what differs from one occurrence to the next."""
    short = _MODULE.sub("", _ARGUMENTS.sub("", name))
    return _NUMBER.sub("#", short) or name


@dataclass(frozen=True)
class HostGroups:
    """`of_name[id]` is the group of a name id that some slice has for its host (int32; -1 for all others and for -1);
    `labels[group]` is its text."""

    of_name: npt.NDArray[np.int32]
    labels: tuple[str, ...]

    @classmethod
    def build(cls, trace: Trace) -> HostGroups:
        """Group each distinct name once."""
        of_name = np.full(len(trace.names) + 1, -1, np.int32)
        groups: dict[str, int] = {}
        for slices in trace.index(Causes).devices:
            for name in np.flatnonzero(np.bincount(slices.host + 1, minlength=1)[1:]).tolist():
                of_name[name] = groups.setdefault(group_of(trace.names[name]), len(groups))
        return cls(of_name, tuple(groups))

    def keys(self, slices: DeviceSlices) -> npt.NDArray[np.int64]:
        """Group of every slice; -1 for host code outside every range, -2 - cause where it was not the host's doing."""
        keys = self.of_name[slices.host].astype(np.int64)
        cause = slices.cause.astype(np.int64)
        return np.where(of_host(slices.cause, slices.host), keys, -2 - cause)

    def label(self, key: int) -> str:
        """The heading of a key."""
        if key >= 0:
            return self.labels[key]
        return UNMARKED if is_host(key) else f"not the host: {CAUSES[-2 - key]}"


def is_host(key: int) -> bool:
    """Whether a key of `HostGroups.keys` says where the host was, marked or not."""
    return key >= -1
