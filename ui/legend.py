"""The legend: every colour with its meaning, the causes with the sentence that explains them."""

from __future__ import annotations

from inspector.analysis.categories import CATEGORIES
from inspector.analysis.causes import CAUSES, EXPLANATIONS
from inspector.picture.palette import INKS, category_ink, category_label, cause_ink
from ui.widgets.sheet import Line


def legend() -> list[Line]:
    """Causes of idle time, kernel categories, and what else has a colour."""
    causes = [Line(name, EXPLANATIONS[name], cause_ink(at)) for at, name in enumerate(CAUSES)]
    categories = [Line(category_label(name), "", category_ink(at)) for at, name in enumerate(CATEGORIES)]
    others = [Line(entry.name, "", at) for at, entry in enumerate(INKS) if at >= len(CAUSES) + len(CATEGORIES)]
    return [Line("Why a device is idle"), *causes, Line("Kernels and copies"), *categories, Line("The rest"), *others]
