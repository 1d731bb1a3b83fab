"""What the colours of the speculation view mean, in one line: groups of prompts, then kinds of tokens."""

from __future__ import annotations

from inspector.picture.palette import INKS
from inspector.picture.ribbon import KIND_INKS, KIND_MARKS
from inspector.picture.speculation import SpeculationPicture
from inspector.trace.schema import TOKEN_KINDS
from ui.speculation.chart import group_ink, line_style, shown_groups
from ui.theme import Theme
from ui.widgets.swatches import Swatches


class Legend(Swatches):
    """Swatches with their names, as many as fit."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Colours of the speculation view", wraps=False)

    def say(self, picture: SpeculationPicture) -> None:
        """Those that can occur."""
        groups = enumerate(shown_groups(picture))
        entries = [(group.name, (group_ink(group, at),)) for at, group in groups if group.rank >= 0]
        if picture.ribbon is not None:
            for at, number in enumerate(KIND_INKS):
                entries.append((f"{KIND_MARKS[at]} {TOKEN_KINDS[at]}".strip(), (INKS[number],)))
        # The line of each group of the chart by position has the same colour: only its dashes tell it from the others.
        lines = {group.name: line_style(at) for at, group in enumerate(shown_groups(picture)) if group.rank >= 0}
        self.set_entries(entries, lines)
