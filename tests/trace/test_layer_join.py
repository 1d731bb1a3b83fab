"""The join of layers and times against a naive one, and the sums that must not suffer from it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inspector.trace.layer_join import join, joined
from inspector.trace.layers import EngineLayers, Layer, Times
from inspector.trace.quality import Quality

NAMES = st.lists(st.sampled_from(["a", "b", "c", "a + b", "a "]), max_size=9)


def listed(names: list[str], name: str = "l.json") -> EngineLayers:
    return EngineLayers(name, tuple(Layer(each, "gemm") for each in names), is_detailed=True)


def timed(names: list[str], name: str = "p.json") -> EngineLayers:
    layers = tuple(
        Layer(each, is_listed=False, times=Times(None, float(at + 1), None)) for at, each in enumerate(names)
    )
    return EngineLayers(name, layers, is_listed=False, is_timed=True, iterations=7)


def average(layer: Layer) -> float | None:
    return layer.times.average_ns if layer.times is not None else None


def naive(layers: list[str], times: list[str]) -> tuple[list[tuple[str, float | None]], list[tuple[str, float]]]:
    """For each layer the first time of its name that no one has; and what is left."""
    left = [(name, float(at + 1)) for at, name in enumerate(times)]
    found: list[tuple[str, float | None]] = []
    for name in layers:
        mine = next((pair for pair in left if pair[0] == name), None)
        if mine is not None:
            left.remove(mine)
        found.append((name, mine[1] if mine is not None else None))
    return found, left


@given(NAMES, NAMES)
def test_the_join_is_the_naive_one(layers: list[str], times: list[str]) -> None:
    quality = Quality()
    engine = join(listed(layers), timed(times), quality)
    found, left = naive(layers, times)
    assert [(layer.name, average(layer)) for layer in engine.layers] == [*found, *left]
    assert [layer.is_listed for layer in engine.layers] == [True] * len(found) + [False] * len(left)
    missing = sum(time is None for _, time in found)
    assert quality.count("unlinked") == missing + len(left)
    # No time is lost and none is there twice.
    assert sorted(ns for layer in engine.layers if (ns := average(layer)) is not None) == [
        float(at + 1) for at in range(len(times))
    ]


@given(st.lists(NAMES, max_size=3), st.lists(NAMES, max_size=3))
def test_every_layer_and_every_time_stays_whatever_is_joined(layers: list[list[str]], times: list[list[str]]) -> None:
    engines = [listed(names, f"l{at}") for at, names in enumerate(layers)]
    profiles = [timed(names, f"p{at}") for at, names in enumerate(times)]
    found = joined([*profiles, *engines], Quality())
    assert [engine.name for engine in found if engine.is_listed] == [engine.name for engine in engines]
    listed_names = sorted(layer.name for engine in found for layer in engine.layers if layer.is_listed)
    assert listed_names == sorted(name for names in layers for name in names)
    total = sum(average(layer) or 0.0 for engine in found for layer in engine.layers)
    assert total == sum(float(at + 1) for names in times for at in range(len(names)))
    laid = [engine.profile for engine in found if engine.profile]
    assert len(set(laid)) == len(laid)
    assert all(not engine.profile or engine.is_timed for engine in found)


def test_equal_profiles_are_told_apart() -> None:
    engines = joined([listed(["a"], "l0"), listed(["a"], "l1"), timed(["a"]), timed(["a"])], Quality())
    assert [engine.name for engine in engines] == ["l0", "l1"]
    assert [engine.is_timed for engine in engines] == [True, True]


def test_what_launches_nothing_needs_no_time() -> None:
    quality = Quality()
    engine = EngineLayers("l", (Layer("n", "NoOp"), Layer("c", "Constant"), Layer("s", "signal")))
    join(engine, timed([]), quality)
    assert quality.notes == []
