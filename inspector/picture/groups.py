"""Kinds of prompts in their order, so that each keeps its colour in every view."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


def group_ranks(trace: Trace) -> dict[int, int]:
    """Number of each group of requests (name id), counted from 0 in the order in which their names first came."""
    found = np.unique(trace["requests"].get("group"))
    return {int(name): rank for rank, name in enumerate(found[found >= 0].tolist())}
