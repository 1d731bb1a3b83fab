"""The views, by dotted name, imported when the window is there. The first is the middle of the window."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ui.views.view import View

VIEWS: tuple[str, ...] = (
    "ui.views.timeline.Timeline",
    "ui.views.gaps.Gaps",
    "ui.views.kernels.Kernels",
    "ui.views.schedule.Schedule",
    "ui.views.speculation.Speculation",
    "ui.views.bandwidth.MemoryBandwidth",
    "ui.views.pages.KvPages",
    "ui.views.pipeline.PipelineView",
    "ui.views.results.RecipeResults",
    "ui.views.layers.Layers",
    "ui.views.run.Run",
)
HEADLINE, FACTS = "ui.views.headline.Headline", "ui.views.facts.Facts"


def view_class(name: str) -> type[View]:
    """The class behind a dotted name of VIEWS."""
    module, _, attribute = name.rpartition(".")
    found: type[View] = getattr(importlib.import_module(module), attribute)
    return found
