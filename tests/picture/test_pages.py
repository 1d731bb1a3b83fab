"""Pictures of KV pages against what every single cell, column and line should be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.page_replay import FREE, KEPT, UNKNOWN, USED, Replay
from inspector.analysis.pages import busiest, counts_at, pages_at
from inspector.analysis.prefix_tree import prefix_tree
from inspector.picture.hues import RequestHues
from inspector.picture.occupancy import occupancy
from inspector.picture.page_map import LARGEST, By, MapLayout, ages, map_pixels, page_map
from inspector.picture.palette import HUES, INKS, RAMP, Theme, ink, rgb
from inspector.picture.prefixes import prefix_picture
from inspector.trace.schema import NEVER
from inspector.trace.selection import Window
from tests.engine_traces import Setup, engine_trace
from tests.picture.test_palette import GROUNDS, THEMES, contrast

TRACE = engine_trace(Setup(seed=5, blocks=30, host_blocks=4))
BUSY = int(TRACE["iterations"]["end"][40])


@given(st.integers(0, 5000), st.integers(1, 400), st.integers(1, 300))
def test_cells_fit_and_each_is_found_where_it_stands(count: int, width: int, height: int) -> None:
    layout = MapLayout.fitting(count, width, height)
    assert layout.rows * layout.columns >= count
    assert layout.columns * layout.cell <= width
    if count <= width * height:
        assert layout.height <= height
        larger = layout.cell + 1
        columns = width // larger
        if larger <= LARGEST:
            assert columns == 0 or -(-count // columns) * larger > height
    for page in {0, count // 2, count - 1} & set(range(count)):
        left, top = layout.place(page)
        assert layout.at(left, top) == layout.at(left + layout.cell - 1, top + layout.cell - 1) == page
    assert layout.at(-1, 0) == -1
    assert layout.at(layout.columns * layout.cell, 0) == -1
    assert layout.at(0, layout.height) == -1


def test_a_pixel_is_enough_for_a_page() -> None:
    layout = MapLayout.fitting(64_000, 940, 130)
    assert (layout.cell, layout.rows) == (1, 69)
    assert MapLayout.fitting(1_000_000, 1300, 400).cell == 1


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(1, 8), st.booleans(), st.data())
def test_every_pixel_of_the_map_is_the_colour_of_its_page(
    count: int, cell: int, dim: bool, data: st.DataObject
) -> None:
    plain = (INKS[ink("page in use")], INKS[ink("free page")])
    cells = np.array(data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)), np.uint8)
    bright = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count))) if dim else None
    layout = MapLayout(count, cell, 7)
    low = data.draw(st.integers(0, layout.rows - 1))
    high = data.draw(st.integers(low + 1, layout.rows + 2))
    pixels = map_pixels(cells, plain, layout, "light", "#ffffff", (low, high), bright)
    assert pixels.shape == ((min(high, layout.rows) - low) * cell, 7 * cell)
    for y in range(pixels.shape[0]):
        for x in range(pixels.shape[1]):
            page = layout.at(x, y + low * cell)
            gap = cell >= 5 and (x % cell == cell - 1 or y % cell == cell - 1)
            red, green, blue = rgb("#ffffff")
            if page >= 0 and not gap:
                red, green, blue = rgb(plain[cells[page]].light)
                if bright is not None and not bright[page]:
                    red, green, blue = (round(255 + (part - 255) * 0.25) for part in (red, green, blue))
            assert int(pixels[y, x]) == 0xFF000000 | red << 16 | green << 8 | blue


def test_what_is_not_known_is_hatched_across_cells() -> None:
    unknown = INKS[ink("unknown page")]
    pixels = map_pixels(np.zeros(9, np.uint8), (unknown,), MapLayout(9, 4, 3), "light", "#ffffff", (0, 3))
    marked = pixels != pixels[0, 1]
    expected = (np.arange(12)[:, None] + np.arange(12)[None, :]) % 4 == 0
    assert (marked == expected).all()


@pytest.mark.parametrize("by", ["request", "age", "references", "tier"])
def test_colours_say_what_the_legend_says(by: By) -> None:
    pages = pages_at(TRACE, BUSY)
    shown = page_map(TRACE, pages, by)
    assert USED in pages.status
    legend = {each.name: label for label, inks in shown.legend for each in inks}
    for page in range(len(pages)):
        colour = shown.inks[shown.cells[page]]
        status, refs = int(pages.status[page]), int(pages.refs[page])
        label = legend[colour.name]
        if status != USED and (by != "age" or status != KEPT):
            assert label == {FREE: "free", KEPT: "cached", UNKNOWN: "unknown"}[status]
        elif by == "request":
            assert label == ("shared by several" if refs > 1 else "one request (hues in turn)")
            assert refs > 1 or colour == HUES[int(TRACE.index(RequestHues).hue[pages.owner[page]])]
        elif by == "references":
            low, _, high = label.removesuffix(" or more").partition(" to ")
            assert int(low) <= refs <= int(high or (low if "more" not in label else 10**9))
        elif by == "age":
            age = pages.time - int(pages.since[page])
            edges = ages(pages.time).tolist()
            step = sum(age >= edge for edge in edges)
            assert colour == RAMP[len(RAMP) - 1 - step]
        else:
            assert label == "in use"
    full = shown.host == shown.inks.index(INKS[ink("host page")])
    assert full.sum() == pages.counts.host > 0


def test_requests_that_hold_pages_together_have_hues_of_their_own() -> None:
    hues = TRACE.index(RequestHues).hue
    log = TRACE.index(Replay).log
    for time in TRACE["iterations"]["end"].tolist():
        live = np.unique(log.request[pages_at(TRACE, time).held])
        assert 0 < len(live) <= len(HUES) or not len(live)
        assert len(set(hues[live].tolist())) == len(live)


def test_an_age_is_counted_in_decades_of_the_time_so_far() -> None:
    assert ages(5_000_000_000).tolist() == [10**6, 10**7, 10**8, 10**9]
    assert ages(0).tolist() == [1, 10, 100, 1000]
    assert NEVER < 0


@settings(max_examples=30, deadline=None)
@given(st.integers(-5, 100), st.integers(1, 120), st.integers(1, 40))
def test_a_column_shows_the_moment_with_most_pages_in_use(low: int, length: int, columns: int) -> None:
    window = Window(low * TRACE.end_ns // 100, (low + length) * TRACE.end_ns // 100)
    shown = occupancy(TRACE, window, columns)
    events = np.unique(TRACE["page_events"]["time"])
    edges = [window.start + window.length * at // columns for at in range(columns + 1)]
    for at in range(columns):
        times = [edges[at], *events[(events >= edges[at]) & (events < edges[at + 1])].tolist()]
        states = [counts_at(TRACE, time) for time in times]
        assert int(shown.used[at]) == max(state.used for state in states)
        there = (int(shown.used[at]), int(shown.kept[at]), int(shown.host[at]))
        assert there in {(state.used, state.kept, state.host) for state in states}
    assert counts_at(TRACE, busiest(TRACE)).used == max(counts_at(TRACE, int(time)).used for time in events)


def test_ways_through_the_tree_are_drawn_whole() -> None:
    tree = prefix_tree(TRACE, pages_at(TRACE, BUSY))
    shown = prefix_picture(tree)
    ends = set(range(len(tree))) - set(tree.parent.tolist())
    assert shown.lines == shown.leaves == len(ends) > 1
    assert set(np.unique(shown.node).tolist()) - {-1} == set(range(len(tree)))
    for line in shown.node:
        way = line[line >= 0].tolist()
        assert way[-1] in ends
        assert [int(tree.parent[row]) for row in way] == [-1, *way[:-1]]
    for row in range(len(tree)):
        # A page shared by several ways is one piece.
        lines = np.flatnonzero((shown.node == row).any(axis=1))
        assert len(lines) == tree.leaves[row]
        assert lines[-1] - lines[0] + 1 == len(lines)
    few = prefix_picture(tree, most_lines=2, most_columns=1)
    assert (few.node.shape, few.leaves, few.deepest) == ((2, 1), len(ends), int(tree.depth.max()) + 1)


@pytest.mark.parametrize("theme", THEMES)
def test_hues_and_steps_stand_out_from_the_ground_and_steps_rise(theme: Theme) -> None:
    for each in (*HUES, *RAMP):
        assert contrast(each.colour(theme), GROUNDS[theme]) >= 1.35
    rising = [contrast(each.colour(theme), GROUNDS[theme]) for each in RAMP]
    assert rising == sorted(rising)
    assert len({each.colour(theme) for each in HUES}) == len(HUES)
    assert not {each.colour(theme) for each in HUES} & {INKS[ink("shared page")].colour(theme)}
