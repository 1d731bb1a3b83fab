from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inspector.picture import screen
from inspector.picture.curves import Samples, curve
from inspector.picture.palette import INKS, ink
from inspector.picture.viewport import Grid, Viewport
from inspector.trace.pyramid import Pyramid
from inspector.trace.selection import Window

GROUND = 0xFFFFFFFF


def stack(spans: list[tuple[int, int, int]], grid: Grid) -> screen.Stack:
    columns = [np.array(column) for column in zip(*spans, strict=True)]
    lane = Pyramid.of(columns[0], columns[1], columns[2].astype(np.uint8))
    return screen.Stack.of(grid, [lane.columns(grid.origin, grid.step, grid.num)])


def spans_of(steps: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    spans, now = [], 0
    for gap, length in steps:
        spans.append((now + gap, now + gap + length, len(spans) % 3))
        now += gap + length
    return spans


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=20),
    st.integers(0, 2000),
    st.integers(100, 3000),
    st.integers(40, 200),
)
def test_no_event_in_view_is_hidden_and_no_pixel_shows_what_is_far(
    steps: list[tuple[int, int]], start: int, length: int, width: int
) -> None:
    spans = spans_of(steps)
    viewport = Viewport(Window(start, start + length), width)
    grid = viewport.grid()
    shown = screen.on_screen(stack(spans, grid), viewport)
    levels = screen.levels(shown)[0]
    for begin, end, _ in spans:
        if begin >= start and max(end, begin + 1) <= start + length:
            first, last = int(viewport.x(begin)), int(np.ceil(viewport.x(max(end, begin + 1))))
            assert levels[max(first - 1, 0) : last + 1].any()
    for x in np.flatnonzero(levels).tolist():
        # A pixel is touched at most by what lies within the columns under it.
        low, high = viewport.time(x) - grid.step, viewport.time(x + 1) + grid.step
        assert any(begin <= high and end >= low for begin, end, _ in spans)


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=20),
    st.integers(0, 2000),
    st.integers(100, 3000),
)
def test_shares_add_up_to_what_is_covered(steps: list[tuple[int, int]], start: int, length: int) -> None:
    spans = spans_of(steps)
    viewport = Viewport(Window(start, start + length), 128)
    grid = viewport.grid()
    shown = screen.on_screen(stack(spans, grid), viewport)
    covered = sum(max(min(end, start + length) - max(begin, start), 0) for begin, end, _ in spans)
    # The window's own edges can cut a column, in which what is covered is taken to lie evenly.
    assert abs(float(shown.share.sum()) * viewport.ns_per_px - covered) <= 2 * grid.step + covered * 1e-5


def test_a_touch_shows_and_untouched_ground_stays_ground() -> None:
    shades = screen.Shades.of("light", "#ffffff")
    viewport = Viewport(Window(0, 1 << 20), 64)
    shown = screen.on_screen(stack([(500_000, 500_001, 1)], viewport.grid()), viewport)
    line = screen.band(shown, 0, shades)
    at = int(viewport.x(500_000))
    assert line[at] == shades.full[1, 1] != GROUND
    assert (np.delete(line, at) == GROUND).all()


def test_what_a_filter_leaves_out_is_grey() -> None:
    shades = screen.Shades.of("light", "#ffffff")
    viewport = Viewport(Window(0, 640), 64)
    grid = viewport.grid()
    everything = screen.on_screen(stack([(0, 320, 1), (320, 640, 3)], grid), viewport)
    chosen = screen.on_screen(stack([(320, 640, 3)], grid), viewport)
    line = screen.band(everything, 0, shades, chosen)
    assert (line[40:] == shades.full[3, screen.LEVELS]).all()
    assert (line[:30] == shades.dimmed[1, screen.LEVELS]).all()
    red, green, blue = line[0] >> 16 & 255, line[0] >> 8 & 255, line[0] & 255
    assert red == green == blue


def test_rows_of_a_stack_can_be_picked() -> None:
    grid = Grid(0, 1, 8)
    lanes = [Pyramid.of(np.array([at]), np.array([at + 1]), np.array([at], np.uint8)) for at in range(4)]
    made = screen.Stack.of(grid, [lane.columns(0, 1, 8) for lane in lanes])
    shown = screen.on_screen(made, Viewport(Window(0, 8), 8), np.array([2, 0]))
    assert shown.touched.tolist() == [[at == 2 for at in range(8)], [at == 0 for at in range(8)]]


def test_outside_of_the_grid_there_is_nothing() -> None:
    made = stack([(0, 64, 1)], Grid(0, 1, 64))
    shown = screen.on_screen(made, Viewport(Window(64, 128), 64))
    assert not shown.touched.any()
    assert not shown.share.any()


def test_a_histogram_is_as_high_as_the_share() -> None:
    block = screen.histogram(
        np.array([0, 0.5, 1, 0.001], np.float32), np.array([False, True, True, True]), 10, GROUND, 0xFF000000
    )
    assert [(column == 0xFF000000).sum() for column in block.T] == [0, 5, 10, 1]


def test_a_curve_rises_where_its_value_does() -> None:
    samples = Samples.of(np.array([0, 50]), np.array([0.0, 10.0]))
    grid = Grid(0, 1, 128)
    low, high = screen.curve_on_screen(curve(samples, grid), grid, Viewport(Window(0, 100), 100))
    assert high[10] == 0
    assert low[50] == 0
    assert high[50] == 10
    assert np.isnan(high[60:]).all()
    block = screen.curve_block(low, high, samples, 20, GROUND, 0xFF000000)
    assert (block[:17, 10] == GROUND).all()
    assert block[19, 10] != GROUND
    assert (block[:, 70] == GROUND).all()


def test_patterns_are_drawn_only_where_an_ink_asks_for_them() -> None:
    dots, hatch = ink("no requests"), ink("unattributed")
    assert (INKS[dots].pattern, INKS[hatch].pattern) == ("dots", "hatch")
    block = np.full((12, 30), GROUND, np.uint32)
    inks = np.repeat(np.array([dots, hatch, 0], np.uint8), 10)
    screen.textured(block, inks, {dots: ("dots", 0xFF000000), hatch: ("hatch", 0xFF000000)})
    marked = block == 0xFF000000
    assert marked[:, :10].any()
    assert marked[:, 10:20].any()
    assert not marked[:, 20:].any()
    assert not (marked[:, :10] == marked[:, 10:20]).all()


def test_every_pattern_differs_from_every_other() -> None:
    seen = set()
    for pattern in ("solid", "dots", "hatch", "diagonals", "lines"):
        block = np.full((12, 30), GROUND, np.uint32)
        screen.textured(block, np.zeros(30, np.uint8), {0: (pattern, 0xFF000000)})
        assert 0 <= np.count_nonzero(block != GROUND) < block.size // 2
        seen.add(block.tobytes())
    assert len(seen) == 5
