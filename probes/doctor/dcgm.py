"""Check of DCGM: whether its host engine can tell what the DRAM of the GPUs does."""

from __future__ import annotations

from probes.dcgm.program import Absent, offers
from probes.dcgm.watch import CONFLICT
from probes.doctor.check import Check, Machine


def dcgm(machine: Machine) -> Check:
    """DRAM activity where GPM has none. Only asks which fields there are: to sample them would disturb others."""
    what = "DCGM: DRAM activity at 10 Hz (record --probe +dcgm)"
    still = "GPM from Hopper on, Nsight GPU metrics, bytes modelled per iteration"
    found = offers(machine.environment)
    if isinstance(found, Absent):
        return Check(what, "no", found.why, found.fix, still)
    return Check(what, "yes", f"{', '.join(dict.fromkeys(found))}; {CONFLICT}")
