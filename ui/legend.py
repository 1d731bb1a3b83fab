"""The legend: every colour with its meaning, the causes with the sentence that explains them."""

from __future__ import annotations

from inspector.analysis.categories import CATEGORIES
from inspector.analysis.causes import CAUSES, EXPLANATIONS
from inspector.analysis.pipeline import IDLE, IDLE_EXPLANATIONS
from inspector.picture.palette import INKS, category_ink, category_label, cause_ink, ink
from ui.widgets.sheet import Line


def legend() -> list[Line]:
    """Causes of idle time, kernel categories, KV pages, pipeline bubbles, and what else has a colour."""
    causes = [Line(name, EXPLANATIONS[name], cause_ink(at)) for at, name in enumerate(CAUSES)]
    categories = [Line(category_label(name), "", category_ink(at)) for at, name in enumerate(CATEGORIES)]
    others = [(at, entry.name) for at, entry in enumerate(INKS) if at >= len(CAUSES) + len(CATEGORIES)]
    stages = [Line(name, IDLE_EXPLANATIONS[name], ink(name)) for name in IDLE]
    pages = [Line(name, "", at) for at, name in others if name.endswith(" page") or name.startswith("page ")]
    apart = {line.ink for line in (*stages, *pages)}
    return [
        Line("Why a device is idle"),
        *causes,
        Line("Kernels and copies"),
        *categories,
        Line("KV pages"),
        *pages,
        Line("Why a pipeline stage is idle"),
        *stages,
        Line("The rest"),
        *(Line(name, "", at) for at, name in others if at not in apart),
    ]
