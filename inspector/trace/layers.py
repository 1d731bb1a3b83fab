"""The layers of a TensorRT engine as its inspector lists them, and how long each took: no records in time.

They stand beside the tables of a trace, as results of recipes do, enter none of its sums, and are never saved with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Types of layers that launch nothing: names for memory, weights, and the order between streams.
_IDLE = frozenset({"noop", "constant", "signal", "wait", "trainstation"})
_REFORMAT = "reformat"
_COPY = "Reformatting CopyNode "
_QUANTIZING = "QDQ"


@dataclass(frozen=True, slots=True)
class Tensor:
    """What a layer reads or writes. `dimensions` None where the file does not tell them, -1 in them where they depend
    on the input; `format` as the file has it, `precision` short ('FP16'), '' unknown.

    `nbytes` is modelled: dimensions by the size of the precision, without the padding of vectorized formats; 0 in host
    memory, None unknown.
    """

    name: str
    dimensions: tuple[int, ...] | None
    format: str
    precision: str
    nbytes: int | None


@dataclass(frozen=True, slots=True)
class Times:
    """How long a layer took, ns, as trtexec measured it: together, on average and the middle one; None not told."""

    total_ns: float | None
    average_ns: float | None
    median_ns: float | None


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of an engine; '' and None are not told.

    `sources` are the layers of the network that it holds, after its metadata (`sources_from` 'metadata') or after its
    own name ('name'); with `has_more` they are some of them, as of a `{ForeignNode[first...last]}`. `weight_bytes` are
    those of the weights and biases that the file lists, 0 for none; `weight_precision` is that of the weights.
    `attributes` is what else the file says, in words. `is_listed` is false for one that only a profile names.
    """

    name: str
    type: str = ""
    sources: tuple[str, ...] = ()
    sources_from: Literal["metadata", "name", ""] = ""
    has_more: bool = False
    inputs: tuple[Tensor, ...] | None = None
    outputs: tuple[Tensor, ...] | None = None
    weight_bytes: int | None = None
    weight_precision: str = ""
    tactic: str = ""
    origin: str = ""
    stream: int = -1
    attributes: str = ""
    is_listed: bool = True
    times: Times | None = None

    @property
    def is_reformat(self) -> bool:
        """Whether it only brings a tensor into another format; quantizing, which it may do on the way, is not that."""
        if self.type:
            return self.type.lower() == _REFORMAT and self.origin != _QUANTIZING
        return self.name.startswith(_COPY)

    @property
    def launches(self) -> bool | None:
        """Whether it launches work, at least one kernel: not by its type, or not where no time passed; None unknown."""
        if self.type and self.type.lower().replace(" ", "") in _IDLE:
            return False
        if self.times is not None and self.times.average_ns is not None:
            return self.times.average_ns > 0
        return True if self.type else None

    @property
    def precision(self) -> str:
        """That of its first input that holds no indices or truth values, else of its weights (which alone are told
        where shapes depend on the input), else of such an output, else of anything.
        """
        inputs = [tensor.precision for tensor in self.inputs or ()]
        outputs = [tensor.precision for tensor in self.outputs or ()]
        known = [each for each in (*inputs, self.weight_precision, *outputs) if each]
        return next((each for each in known if not each.startswith(_INDICES)), known[0] if known else "")

    @property
    def nbytes(self) -> int | None:
        """Bytes moved, modelled: inputs, outputs and listed weights once; 0 if it launches nothing; None unknown."""
        if self.launches is False:
            return 0
        if self.inputs is None or self.outputs is None or self.weight_bytes is None:
            return None
        total = self.weight_bytes
        for tensor in (*self.inputs, *self.outputs):
            if tensor.nbytes is None:
                return None
            total += tensor.nbytes
        return total


_INDICES = ("BOOL", "INT16", "INT32", "INT64", "UINT")


@dataclass(frozen=True, slots=True)
class EngineLayers:
    """An engine in the order in which it runs. `name` is of the file that lists its layers, of its profile where none
    does; `profile` of the file that was laid to it.

    `is_listed`: a file lists its layers; `is_detailed`: with more than names. `is_timed`: a profile was taken, of
    `iterations` inferences (-1 not told).
    """

    name: str
    layers: tuple[Layer, ...]
    profile: str = ""
    is_listed: bool = True
    is_detailed: bool = False
    is_timed: bool = False
    iterations: int = -1

    @property
    def title(self) -> str:
        """All files that tell of it."""
        return f"{self.name} + {self.profile}" if self.profile else self.name
