from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inspector.picture.viewport import SHORTEST_NS, Viewport
from inspector.trace.selection import Window

WINDOWS = st.builds(
    lambda start, length: Window(start, start + length), st.integers(0, 10**12), st.integers(10, 10**12)
)
WIDTHS = st.integers(40, 4000)


@given(WINDOWS, WIDTHS)
def test_the_grid_reaches_beyond_the_window_with_one_to_two_columns_a_pixel(window: Window, width: int) -> None:
    viewport = Viewport(window, width)
    grid = viewport.grid()
    assert grid.origin <= window.start
    assert window.end <= grid.end
    assert grid.step & (grid.step - 1) == 0
    assert grid.origin % grid.step == 0
    assert grid.step <= max(viewport.ns_per_px, 1) < grid.step * 2 or grid.step == 1
    shown = window.length / grid.step
    assert (window.start - grid.origin) / grid.step >= width / 2
    assert grid.num <= shown + 7 * width + 400


@given(WINDOWS, WIDTHS, st.floats(-0.4, 0.4))
def test_a_small_pan_stays_on_the_grid_and_columns_stay_in_place(window: Window, width: int, share: float) -> None:
    viewport = Viewport(window, width)
    moved = viewport.panned(share * width)
    assert viewport.grid().origin <= moved.start
    assert moved.end <= viewport.grid().end
    again = Viewport(moved, width).grid()
    assert (again.origin - viewport.grid().origin) % again.step == 0


@given(WINDOWS, WIDTHS, st.floats(0.1, 10), st.floats(0, 1))
def test_zooming_keeps_the_time_under_the_pointer(window: Window, width: int, factor: float, share: float) -> None:
    viewport = Viewport(window, width)
    x = share * width
    zoomed = viewport.zoomed(factor, x)
    assert zoomed.length == max(round(window.length * factor), SHORTEST_NS)
    before, after = viewport.time(x), Viewport(zoomed, width).time(x)
    assert abs(before - after) <= 1 + abs(before) * 1e-9


def test_pixels_and_times_are_each_others_inverse() -> None:
    viewport = Viewport(Window(1000, 3000), 500)
    assert viewport.x(1000) == 0
    assert viewport.x(3000) == 500
    assert viewport.time(250) == 2000
