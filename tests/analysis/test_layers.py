"""Figures of engines against sums made by hand, and the table that must say the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis.layers import UNKNOWN, figures, layer_table
from inspector.trace.layers import EngineLayers, Layer, Tensor, Times


def tensor(precision: str, nbytes: int | None) -> Tensor:
    return Tensor("t", (2, -1) if nbytes is None else (2, 3), f"{precision} format", precision, nbytes)


LAYERS = st.builds(
    Layer,
    name=st.sampled_from(["a", "b + c", "Reformatting CopyNode for x"]),
    type=st.sampled_from(["", "gemm", "NoOp", "Reformat"]),
    sources=st.lists(st.sampled_from(["p", "q", "r"]), max_size=3, unique=True).map(tuple),
    has_more=st.booleans(),
    inputs=st.none() | st.lists(st.builds(tensor, st.sampled_from(["FP16", "INT8", ""]), st.integers(0, 9))).map(tuple),
    outputs=st.none() | st.lists(st.builds(tensor, st.just("FP32"), st.none() | st.integers(0, 9))).map(tuple),
    weight_bytes=st.none() | st.integers(0, 9),
    origin=st.sampled_from(["", "QDQ", "REFORMAT"]),
    times=st.none() | st.builds(Times, st.none(), st.none() | st.integers(0, 9).map(float), st.none()),
)


@given(st.lists(LAYERS, max_size=8))
def test_figures_and_table_are_those_of_the_layers(layers: list[Layer]) -> None:
    engine = EngineLayers("e", tuple(layers))
    found, table = figures(engine), layer_table(engine)
    assert found.layers == len(table) == len(layers)
    assert found.sources == len({source for layer in layers for source in layer.sources})
    column = {column.name: column for column in table.columns}
    averages = [column["Average"].at(row) for row in range(len(layers))]
    known = [ns for ns in averages if isinstance(ns, float)]
    assert found.total_ns == (sum(known) if known else None)
    shares = [each for row in range(len(layers)) if isinstance(each := column["Share"].at(row), float)]
    assert sum(shares) == pytest.approx(100 if sum(known) else 0)
    sizes = [column["Bytes"].at(row) for row in range(len(layers))]
    assert found.unknown_bytes == sizes.count(None)
    told = [size for size in sizes if isinstance(size, int)]
    assert found.bytes == (sum(told) if told else None)
    if known:
        assert sum(found.by_precision.values()) == pytest.approx(sum(known))
    if found.launches is not None:
        assert found.launches + sum(layer.launches is False for layer in layers) == len(layers)
    for layer, size in zip(layers, sizes, strict=True):
        if layer.launches is False:
            assert size == 0
        elif layer.inputs is None or layer.outputs is None or layer.weight_bytes is None:
            assert size is None


def test_the_precision_of_a_layer_is_that_of_its_first_input_with_values() -> None:
    layer = Layer("a", inputs=(tensor("INT64", 8), tensor("INT8", 1)), outputs=(tensor("FP32", 4),))
    assert layer.precision == "INT8"
    assert Layer("a", inputs=(tensor("BOOL", 1),), outputs=(tensor("FP16", 4),)).precision == "FP16"
    assert Layer("a", inputs=(tensor("INT32", 1),), outputs=()).precision == "INT32"
    assert Layer("a").precision == ""
    assert figures(EngineLayers("e", (Layer("a", times=Times(None, 2.0, None)),))).by_precision == {UNKNOWN: 2.0}


def test_nothing_known_is_none_not_zero() -> None:
    found = figures(EngineLayers("e", (Layer("a"), Layer("b"))))
    assert (found.launches, found.bytes, found.total_ns, found.reformat_ns) == (None, None, None, None)
    assert found.unknown_bytes == 2
