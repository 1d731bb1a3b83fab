from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis.busy import busy
from inspector.analysis.categories import CATEGORIES
from inspector.analysis.causes import CAUSES
from inspector.picture.overview import overview
from inspector.picture.palette import INKS, Theme, category_ink, cause_ink, colours, ink, mark_on, rgb, text_on
from inspector.trace.selection import Window
from inspector.trace.trace import Trace
from tests.analysis.generate import traces

GROUNDS: dict[Theme, str] = {"light": "#ffffff", "dark": "#1a1c1f"}


THEMES: tuple[Theme, ...] = ("light", "dark")


def luminance(colour: str) -> float:
    parts = [value / 255 for value in rgb(colour)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_category_and_cause_has_its_ink() -> None:
    # The legend may say more than the name.
    assert [INKS[category_ink(each)].name.split(",")[0] for each in range(len(CATEGORIES))] == list(CATEGORIES)
    assert [INKS[cause_ink(number)].name for number in range(len(CAUSES))] == list(CAUSES)
    assert ink("sync") == cause_ink(CAUSES.index("sync"))
    with pytest.raises(KeyError):
        ink("GEMM")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_inks_can_be_told_apart_within_a_strip_and_from_the_ground(theme: Theme) -> None:
    for family in (INKS[: len(CATEGORIES)], INKS[len(CATEGORIES) : len(CATEGORIES) + len(CAUSES)]):
        for one, other in itertools.combinations(family, 2):
            same = one.colour(theme).lower() == other.colour(theme).lower()
            assert not same or one.pattern != other.pattern
    for entry in INKS:
        assert contrast(entry.colour(theme), GROUNDS[theme]) >= 1.15
        assert contrast(entry.colour(theme), text_on(entry.colour(theme))) >= 4.1


def test_what_has_no_cause_is_not_told_by_colour_alone() -> None:
    assert INKS[ink("no requests")].pattern == "dots"
    assert INKS[ink("unattributed")].pattern == "hatch"


def test_colours_are_those_of_the_inks() -> None:
    for theme in ("light", "dark"):
        table = colours(theme)  # type: ignore[arg-type]
        assert table.shape == (len(INKS), 3)
        assert tuple(table[0]) == rgb(INKS[0].colour(theme))  # type: ignore[arg-type]


@given(traces())
def test_the_overview_adds_up_to_the_busy_time(trace: Trace) -> None:
    made = overview(trace, 8)
    edges = np.linspace(0, max(trace.end_ns, 1), 9).astype(np.int64)
    lengths = np.diff(edges)
    figures = [busy(trace, device).busy_ns for device in range(len(trace["devices"]))]
    shown = [float((share * lengths).sum()) for share in made.share]
    assert shown == pytest.approx([figure for figure in figures if figure], rel=1e-5)
    assert ((made.share > 0) == made.touched).all()


def test_causes_whose_colours_are_close_differ_by_pattern() -> None:
    assert [INKS[ink(name)].pattern for name in ("host code", "gc", "os blocked")] == ["solid", "diagonals", "lines"]
    for theme in THEMES:
        for name in ("gc", "os blocked"):
            colour = INKS[ink(name)].colour(theme)
            assert 1.25 < contrast(colour, mark_on(colour)) < 3


@given(traces(), st.integers(1, 100))
def test_the_overview_of_a_run_ends_where_all_has_been_read(trace: Trace, percent: int) -> None:
    settled = trace.end_ns * percent // 100
    going = Trace(trace.info, trace.tables, trace.names, trace.quality, generation=1, settled_ns=settled)
    made = overview(going, 8)
    assert made.window == Window(0, max(settled, 1))
    window = Window(0, settled)
    figures = [busy(trace, device, window).busy_ns for device in range(len(trace["devices"]))]
    worked = [figure for device, figure in enumerate(figures) if busy(trace, device).busy_ns]
    lengths = np.diff(np.linspace(0, max(settled, 1), 9).astype(np.int64))
    assert [float((share * lengths).sum()) for share in made.share] == pytest.approx(worked, rel=1e-5, abs=1e-3)
