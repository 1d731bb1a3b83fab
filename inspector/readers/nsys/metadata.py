"""What an export says of itself: versions, capture settings, clocks, ranks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from inspector.readers.nsys.source import PROCESS_BITS, Source, records

_ENVIRONMENT = "ENVIRONMENT_VARIABLE"
# The job's rank first; where several are set the first of this list holds.
_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
_RANK_NAME = re.compile(r"MPI Rank (\d+)$")
_YES = ("true", "1", "yes", "on")
_NO = ("", "false", "0", "no", "off")


@dataclass(frozen=True)
class Metadata:
    """`export` and `capture` are the pairs that the export keeps; of a name that comes often, all values in order.

    Environment variables are left out: they hold secrets, and only the rank is of use.
    """

    export: Mapping[str, str] = field(default_factory=dict)
    capture: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranks: Mapping[int, int] = field(default_factory=dict)
    """Rank by globalPid."""
    command_rank: tuple[str, int] | None = None
    """Variable and rank of the profiled command, from its environment."""
    utc_ns: int | None = None
    """Wall clock of the session start, ns since 1970."""
    session_ns: int | None = None
    """Length of the session, ns."""

    @property
    def schema(self) -> str:
        """Version of the export's schema."""
        return self.export.get("EXPORT_SCHEMA_VERSION", "pre-2.9")

    @property
    def product(self) -> str:
        """'Nsight Systems 2025.5.2'."""
        version = self.export.get("EXPORT_PRODUCT_VERSION", "")
        return f"Nsight Systems {'.'.join(version.split('.')[:3])}".strip()

    @property
    def normalized(self) -> bool:
        """Whether event times are UTC ns rather than ns of the session."""
        return self.export.get("EXPORT_PARAM_TIME_NORMALIZE", "").lower() in _YES

    @property
    def shift_ns(self) -> int:
        """By how much the person who exported moved all times."""
        shift = self.export.get("EXPORT_PARAM_TIME_SHIFT", "")
        return int(shift) if re.fullmatch(r"-?[0-9]{1,18}", shift) else 0

    @property
    def session_start(self) -> int | None:
        """File time of the session start; None where the file does not tell."""
        if not self.normalized:
            return self.shift_ns
        return None if self.utc_ns is None else self.utc_ns + self.shift_ns

    @property
    def session_end(self) -> int | None:
        """File time of the session end; None where the file does not tell."""
        start = self.session_start
        return None if start is None or self.session_ns is None else start + self.session_ns

    @property
    def epoch_ns(self) -> int | None:
        """Wall clock of file time 0. A shift was made to correct the clock, so it counts."""
        return 0 if self.normalized else self.utc_ns

    @property
    def simulated(self) -> bool:
        """Whether the export says, in a word or a sentence, that nothing of it was measured."""
        values = (self.export.get("SIMULATED", ""), *self.capture.get("SIMULATED", ()))
        return any(value.lower() not in _NO for value in values)

    def settings(self, name: str) -> tuple[str, ...]:
        """All values of a capture setting, of the session or of one of its processes."""
        return tuple(
            value
            for key, values in self.capture.items()
            if key == name or (key.startswith("PROCESS_") and key.partition(":")[2] == name)
            for value in values
        )

    @property
    def traced(self) -> tuple[str, ...]:
        """Kinds of events that the capture asked for: 'Cuda', 'NvtxEvents', ...; empty where the file does not tell."""
        return tuple(dict.fromkeys(self.settings("CAPTURE_EVENT_TYPE")))


def read_metadata(source: Source, strings: Mapping[int, str]) -> Metadata:
    """All of it; every part may be missing. `strings` is StringIds."""
    export: dict[str, str] = {}
    for table in ("EXPORT_META_DATA", "META_DATA_EXPORT"):
        export.update((str(name), str(value or "")) for name, value in records(source, table, "name", "value"))
    capture: dict[str, tuple[str, ...]] = {}
    variables: dict[str, int] = {}
    for name, value in records(source, "META_DATA_CAPTURE", "name", "value"):
        if _ENVIRONMENT in str(name):
            variable, _, content = str(value).partition("=")
            if variable in _RANK_VARIABLES and content.isdecimal() and len(content) < 10:
                variables.setdefault(variable, int(content))
            continue
        capture[str(name)] = (*capture.get(str(name), ()), str(value or ""))
    chosen = next((name for name in _RANK_VARIABLES if name in variables), None)
    return Metadata(
        export,
        capture,
        _ranks(source, strings),
        None if chosen is None else (chosen, variables[chosen]),
        _first(source, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs"),
        _first(source, "ANALYSIS_DETAILS", "duration"),
    )


def _first(source: Source, table: str, column: str) -> int | None:
    return next((v for (v,) in records(source, table, column) if isinstance(v, int)), None)


def _ranks(source: Source, strings: Mapping[int, str]) -> dict[int, int]:
    ranks: dict[int, int] = {}
    # Before there was a table of ranks, the thread that called MPI_Init was named after its rank.
    names = {id_: found for id_, text in strings.items() if (found := _RANK_NAME.match(text))}
    if names:
        for name, tid in records(source, "ThreadNames", "nameId", "globalTid"):
            if name in names and tid is not None:
                ranks[tid & PROCESS_BITS] = int(names[name][1])
    for tid, rank in records(source, "MPI_RANKS", "globalTid", "rank"):
        if tid is not None and rank is not None:
            ranks[tid & PROCESS_BITS] = rank
    return ranks
