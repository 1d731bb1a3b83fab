"""What watches a workload while it runs and writes rows into a recording.

`PROBES` lists the probes by dotted name; each is imported at first use, so that start-up stays light.
"""

from __future__ import annotations

PROBES: tuple[str, ...] = ()
