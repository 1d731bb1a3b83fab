"""What the colours of the schedule mean, in one line."""

from __future__ import annotations

from inspector.picture.palette import INKS, ink
from ui.theme import Theme
from ui.widgets.swatches import Swatches

_SHORT = {"generation, room for more tokens": "draft not used", "held, not scheduled": "not scheduled"}
_SHORT["generation, tokens not told"] = "tokens not told"


class Legend(Swatches):
    """Swatches with their names, as many as fit."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Colours of the schedule", wraps=False)

    def say(self, static: bool, drafts: bool, steps: bool, untold: bool) -> None:
        """Those that can occur."""
        names = ["queued", "context chunk", "generation"]
        # Before what is seldom there: where it is narrow, the last ones are left out.
        names += ["padding"] if static else []
        names += ["generation, room for more tokens"] if drafts else []
        names += ["generation, tokens not told"] if untold else []
        names += ["paused", "held, not scheduled"] if steps else []
        self.set_entries([(_SHORT.get(name, INKS[ink(name)].name), (INKS[ink(name)],)) for name in names])
