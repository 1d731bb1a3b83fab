"""What each colour and pattern means: the single source for every view, the legend and the report.

An *ink* is a meaning with a colour in both themes and a pattern. Pictures hold ink numbers, never colours. Hues are
Paul Tol's (bright and muted), which stay apart for the common colour-vision deficiencies; in the dark theme the deepest
ones are lifted so that they stand out from the ground.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from inspector.analysis.categories import CATEGORIES
from inspector.analysis.causes import CAUSES

Theme = Literal["light", "dark"]
Pattern = Literal["solid", "dots", "hatch", "diagonals", "lines"]


@dataclass(frozen=True)
class Ink:
    """One meaning: its name in the legend, its colour ('#rrggbb') in each theme, and its pattern."""

    name: str
    light: str
    dark: str
    pattern: Pattern = "solid"

    def colour(self, theme: Theme) -> str:
        """'#rrggbb' in that theme."""
        return self.light if theme == "light" else self.dark


_CATEGORY_COLOURS: dict[str, tuple[str, str]] = {
    "attention": ("#4477AA", "#5B92CC"),
    "GEMM": ("#228833", "#36A34A"),
    "MoE": ("#66CCEE", "#66CCEE"),
    "collectives": ("#EE6677", "#EE6677"),
    "norm": ("#BBBBBB", "#A3A7AD"),
    "sampling": ("#AA3377", "#C9559A"),
    "KV copy": ("#CCBB44", "#CCBB44"),
    "memory": ("#DDCC77", "#DDCC77"),
    "forward pass": ("#009988", "#2FA899"),
    "other": ("#888888", "#7D828A"),
}
# Categories are called in the window as in files, but where the short key would leave out half of what it stands for.
_CATEGORY_LABELS = {"norm": "norm, element-wise"}
_CAUSE_COLOURS: dict[str, tuple[str, str, Pattern]] = {
    "no requests": ("#D3D6DA", "#4B5058", "dots"),
    "sync": ("#882255", "#B0417C", "solid"),
    "allocation": ("#A8324F", "#C4506C", "solid"),
    "module load": ("#BD4A48", "#D0605C", "solid"),
    "launching": ("#CC5A3F", "#DC6E50", "solid"),
    "os blocked": ("#D96A38", "#E67C48", "lines"),
    "gc": ("#E47C34", "#EE8C42", "diagonals"),
    "host code": ("#EE7733", "#F59A55", "solid"),
    "launch overhead": ("#EECC66", "#EECC66", "solid"),
    "graph internal": ("#332288", "#6C5CC8", "solid"),
    "waiting for a peer": ("#3D4FA3", "#5E76D2", "solid"),
    "stream dependency": ("#4A78B5", "#5F93D3", "solid"),
    "device busy elsewhere": ("#62A0C8", "#6FB2DC", "solid"),
    "queue latency": ("#88CCEE", "#88CCEE", "solid"),
    "unattributed": ("#D9DCE1", "#5A6069", "hatch"),
}
# What is neither a kernel category nor a cause. Structure is grey; calls that cause idle time have the cause's ink.
_OTHERS: tuple[Ink, ...] = (
    Ink("busy", "#8894A3", "#6C7786"),
    Ink("whole graph", "#6B7A8F", "#8496AE", "hatch"),
    Ink("graph launch", "#39424E", "#C4CCD6"),
    Ink("other call", "#A9AFB8", "#5E656F"),
    Ink("range", "#C9CED6", "#464C55"),
    Ink("range, nested", "#B7BEC8", "#525963"),
    Ink("operator", "#BFC9CF", "#414C53"),
    Ink("python", "#D0CCC2", "#4A4740"),
    Ink("iteration", "#C3C9D2", "#4A515C"),
    Ink("context iteration", "#A9A0CE", "#6F649C"),
    Ink("generation iteration", "#9CC3B4", "#4F7D6E"),
    Ink("mixed iteration", "#CDB891", "#8A764E"),
    Ink("profiler", "#E3B9C0", "#6B3D45", "hatch"),
    Ink("mark", "#39424E", "#C4CCD6"),
    Ink("counter", "#44708F", "#7FB0D0"),
    Ink("counter, second", "#8A5A83", "#C99AC2"),
    Ink("counter, third", "#8A6D1F", "#D9BC6B"),
    Ink("memory read", "#4477AA", "#5B92CC"),
    Ink("memory write", "#EE7733", "#F59A55", "diagonals"),
    # KV pages: what nobody holds is quiet, what is held has a hue.
    Ink("page in use", "#4477AA", "#5B92CC"),
    Ink("shared page", "#39424E", "#D5DAE0", "dots"),
    Ink("cached page", "#AFC3CF", "#4D616E", "diagonals"),
    Ink("free page", "#E6E9ED", "#2E3339"),
    Ink("host page", "#CCBB44", "#B3A53E", "lines"),
    Ink("unknown page", "#CFC0B4", "#6A5D52", "hatch"),
    # Pipeline bubbles: cool where a stage waits for another one, warm where it holds itself up.
    Ink("fill", "#BCC9E6", "#3F4C70", "hatch"),
    Ink("drain", "#CFC3E4", "#574A75", "diagonals"),
    Ink("previous stage", "#7FA6D9", "#4A73AD", "hatch"),
    Ink("next stage", "#66BBAA", "#2E8072", "dots"),
    Ink("own host", "#F0B080", "#A8673A", "lines"),
    Ink("not told", "#D9DCE1", "#5A6069", "hatch"),
    Ink("no processor", "#882255", "#C0528C", "diagonals"),
    # What a request does: waiting is quiet, work has the hues of iterations, what went wrong is warm.
    Ink("queued", "#C9CDD3", "#4B5159", "dots"),
    Ink("context chunk", "#7563B3", "#8F7FD0"),
    Ink("generation", "#2F8F78", "#4DB398"),
    Ink("generation, room for more tokens", "#C4E0D6", "#2B4A41"),
    Ink("paused", "#EE7733", "#F59A55", "lines"),
    Ink("finished", "#2B323B", "#E3E8EE"),
    Ink("held, not scheduled", "#DFE2E6", "#3A4047", "hatch"),
    Ink("padding", "#D9909A", "#8E4A55", "hatch"),
    Ink("generation, tokens not told", "#7DB9AA", "#37806F", "hatch"),
    # Draft tokens: what became of them.
    Ink("accepted", "#2F8F78", "#4DB398"),
    Ink("rejected", "#E0A9B0", "#80454F", "diagonals"),
    Ink("corrected", "#DDAA33", "#E0B550", "lines"),
    Ink("from the target", "#A9B2BD", "#68717C"),
)


# Things of one kind that only have to be told apart, such as requests and micro-batches: these hues in turn.
HUES: tuple[Ink, ...] = tuple(
    Ink(f"hue {number}", *colours)
    for number, colours in enumerate(
        (
            ("#4477AA", "#5B92CC"),
            ("#CC6677", "#E08391"),
            ("#117733", "#3AA55F"),
            ("#DDCC77", "#DDCC77"),
            ("#332288", "#7D6DDB"),
            ("#44AA99", "#44AA99"),
            ("#882255", "#B84A86"),
            ("#88CCEE", "#88CCEE"),
            ("#999933", "#ABAB45"),
        )
    )
)
# From little to much: what is more stands out more from the ground.
RAMP: tuple[Ink, ...] = tuple(
    Ink(f"step {number}", *colours)
    for number, colours in enumerate(
        (
            ("#C9DDEA", "#2C4258"),
            ("#94BFD9", "#33658F"),
            ("#5A98C0", "#4F8DBB"),
            ("#2F6CA0", "#86BBDD"),
            ("#163F73", "#CFE7F4"),
        )
    )
)


def category_label(category: str) -> str:
    """What people read for a name in CATEGORIES."""
    return _CATEGORY_LABELS.get(category, category)


INKS: tuple[Ink, ...] = (
    *(Ink(category_label(name), *_CATEGORY_COLOURS[name]) for name in CATEGORIES),
    *(Ink(name, *_CAUSE_COLOURS[name]) for name in CAUSES),
    *_OTHERS,
)
"""All inks. `ink`, `category_ink` and `cause_ink` give their numbers."""

_NUMBERS = {entry.name: number for number, entry in enumerate(INKS[len(CATEGORIES) :], len(CATEGORIES))}


def category_ink(category: int) -> int:
    """Ink of an index into CATEGORIES."""
    return category


def cause_ink(cause: int) -> int:
    """Ink of an index into CAUSES."""
    return len(CATEGORIES) + cause


def ink(name: str) -> int:
    """Ink of a cause or of one of the other meanings by its name; KeyError for a stranger."""
    return _NUMBERS[name]


def rgb(colour: str) -> tuple[int, int, int]:
    """(red, green, blue) of '#rrggbb', 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def colours(theme: Theme) -> npt.NDArray[np.uint8]:
    """(inks, 3) uint8: red, green, blue of every ink."""
    return np.array([rgb(entry.colour(theme)) for entry in INKS], np.uint8)


def mark_on(colour: str) -> str:
    """The colour of diagonals and lines on '#rrggbb': enough to tell neighbours apart, quiet under text."""
    ground, mark = rgb(colour), rgb(text_on(colour))
    return "#" + "".join(f"{round(low + (high - low) * 0.3):02X}" for low, high in zip(ground, mark, strict=True))


def text_on(colour: str) -> str:
    """Near-black or white, whichever contrasts more with '#rrggbb' (by WCAG's relative luminance)."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in rgb(colour))
    )
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    # White has luminance 1, the black of text about 0.009.
    return "#FFFFFF" if 1.05 / (light + 0.05) > (light + 0.05) / 0.059 else "#15181C"
