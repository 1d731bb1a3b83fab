"""Modelled bytes of iterations, against every step counted by hand; and what records say of a configuration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.configured import MODELLED, configured, contradictions, page_words
from inspector.analysis.iterations import Iterations
from inspector.analysis.modelled_bytes import modelled_bytes, ranks
from inspector.configuration.settings import Configuration, Setting, of
from inspector.trace.schema import PHASES
from inspector.trace.table import Table
from inspector.trace.trace import Trace
from tests.drawn import draw
from tests.engine_traces import Setup, engine_trace

MODEL: dict[str, int | str | bool] = {
    "family": "llama",
    "layers": 2,
    "hidden_size": 16,
    "intermediate_size": 24,
    "heads": 2,
    "kv_heads": 1,
    "head_dim": 8,
    "vocabulary": 32,
    "tied": True,
    "dtype": "float16",
}
WEIGHTS = 2 * (32 * 16 + 2 * (16 * 8 * (2 + 1 + 1 + 2) + 3 * 16 * 24))
KV = 2 * 2 * 1 * 8 * 2


def config(**values: int | str | bool) -> Configuration:
    return of(Setting(name, value, "/m/config.json", name) for name, value in values.items())


def by_hand(trace: Trace, window: int | None) -> list[tuple[int, int, int]]:
    """(weights, read, written) of every iteration."""
    found = []
    for row in range(len(trace["iterations"])):
        read = written = 0
        table = trace["steps"]
        for step in range(len(table)):
            if table["iteration"][step] == row and PHASES[table["phase"][step]] in ("context", "generation"):
                position = int(table["position"][step])
                read += KV * (position if window is None else min(position, window))
                written += KV * int(table["tokens"][step])
        found.append((WEIGHTS if trace["iterations"]["tokens"][row] > 0 else 0, read, written))
    return found


@settings(max_examples=25, deadline=None)
@given(st.builds(Setup, seed=st.integers(0, 999), work=st.integers(1, 8), draft=st.integers(0, 3)), st.data())
def test_bytes_of_iterations(setup: Setup, data: st.DataObject) -> None:
    window = data.draw(st.one_of(st.none(), st.integers(1, 40)))
    more = {} if window is None else {"sliding_window": window}
    trace = engine_trace(setup).configured(config(**MODEL, **more))
    size = len(trace.index(Iterations))
    first = data.draw(st.integers(0, size))
    last = data.draw(st.integers(first, size))
    found = modelled_bytes(trace, first, last)
    assert (
        list(zip(found.weights.tolist(), found.read.tolist(), found.written.tolist(), strict=True))
        == (by_hand(trace, window)[first:last])
    )
    assert found.total.tolist() == (found.weights + found.read + found.written).tolist()
    assert found.why == ""


def test_without_steps_only_the_weights_are_known() -> None:
    trace = engine_trace(Setup(), leave_out=("steps",)).configured(config(**MODEL))
    found = modelled_bytes(trace, 0, len(trace["iterations"]))
    assert (found.read == -1).all()
    assert set(found.total.tolist()) <= {0, WEIGHTS}


def test_without_a_model_nothing_is_known() -> None:
    trace = engine_trace(Setup())
    found = modelled_bytes(trace, 0, 5)
    assert found.total.tolist() == [-1] * 5
    assert found.why == "family is not known"
    huge = {**MODEL, "hidden_size": 1 << 50, "layers": 1 << 50}
    assert (modelled_bytes(trace.configured(config(**huge)), 0, 5).total == -1).all()


def test_how_many_devices_share_the_work() -> None:
    trace = draw(
        """
      gpu 0 stream 7  ...AA.BB
      gpu 1 stream 7  ..CCC..D
    """,
        unlinked="ABCD",
    ).trace
    assert ranks(trace)[0] == 0
    assert ranks(trace.configured(config(tensor_parallel=2, pipeline_parallel=4)))[0] == 8
    alone = engine_trace(Setup())
    assert ranks(alone) == (1, "one device is at work")


def test_a_configuration_joins_a_trace_and_shares_what_is_built() -> None:
    trace = engine_trace(Setup())
    index = trace.index(Iterations)
    before = len(trace.quality.notes)
    joined = trace.configured(config(layers=3))
    assert joined.index(Iterations) is index
    assert len(trace.info.configuration) == 0
    assert len(trace.quality.notes) == before
    assert joined.quality.notes[before].text.startswith("the configuration is that of this run, which nothing says")
    again = joined.configured(config(layers=4, heads=5))
    assert again.info.configuration.integer("layers") == 3
    assert again.info.configuration.integer("heads") == 5
    assert "Model, Layers is 3, as the trace says, and not 4" in again.quality.notes[-1].text
    assert again.configured(Configuration()) is again


def test_records_that_say_otherwise() -> None:
    setup = Setup(max_batch_size=6, max_num_tokens=48, tokens_per_block=8, blocks=40)
    trace = engine_trace(setup)
    same = config(max_batch_size=6, max_num_tokens=48, tokens_per_block=8, kv_blocks=40)
    assert contradictions(trace.configured(same)) == {}
    other = config(max_batch_size=7, max_num_tokens=49, tokens_per_block=9, kv_blocks=41)
    assert contradictions(trace.configured(other)) == {
        "max_batch_size": "recorded: 6",
        "max_num_tokens": "recorded: 48",
        "tokens_per_block": "recorded: 8",
        "kv_blocks": "recorded: 40",
    }
    assert contradictions(trace) == {}


def test_what_changed_while_it_ran() -> None:
    trace = engine_trace(Setup(max_batch_size=6))
    changed = trace["iterations"]["max_batch_size"].copy()
    changed[len(changed) // 2 :] = 2
    columns = {**trace["iterations"].columns, "max_batch_size": changed}
    turned = Trace(trace.info, {**trace.tables, "iterations": Table("iterations", columns)}, trace.names, trace.quality)
    assert contradictions(turned.configured(config(max_batch_size=6))) == {"max_batch_size": "recorded: 2 in the end"}
    assert contradictions(turned.configured(config(max_batch_size=2))) == {}
    assert contradictions(turned.configured(config(max_batch_size=3))) == {"max_batch_size": "recorded: 2, 6"}


@pytest.mark.parametrize(
    ("recorded", "more", "expected"),
    [
        ([8 * KV], {}, ""),
        ([], {}, ""),
        ([8 * KV + 1], {}, f"recorded: {8 * KV + 1:,} bytes"),
        ([4 * KV], {}, f"recorded: {4 * KV:,} bytes"),
        ([4 * KV], {"tensor_parallel": 2}, ""),
        ([2 * KV], {"tensor_parallel": 2, "pipeline_parallel": 2}, ""),
        ([9 * KV], {"speculation": "model"}, f"recorded: {9 * KV:,} bytes, perhaps with the KV of a draft model"),
        ([7 * KV], {"speculation": "model"}, f"recorded: {7 * KV:,} bytes"),
    ],
)
def test_pages_of_another_size_than_the_model_makes(
    recorded: list[int], more: dict[str, int | str], expected: str
) -> None:
    assert page_words(config(**MODEL, tokens_per_block=8, **more), recorded) == expected


def test_lines_say_where_each_stands_and_what_is_not_known() -> None:
    trace = engine_trace(Setup())
    assert configured(trace).groups == ()
    assert configured(trace).unknown == ()
    found = configured(trace.configured(config(**MODEL, tokens_per_block=9)))
    lines = {line.name: line for _, line in found.lines}
    assert lines["layers"].where == "layers in config.json"
    assert lines["layers"].origin == "layers in /m/config.json"
    assert lines["tokens_per_block"].doubt == "recorded: 8"
    assert lines["page_bytes"].exact == 9 * KV
    assert [heading for heading, _ in found.groups][-1] == MODELLED
    assert "pass_bytes" not in lines
    assert {"max_batch_size", "kv_fraction", "tensor_parallel"} <= set(found.unknown)
    assert not set(found.unknown) & {*lines, "expert_parallel"}
    assert not any(line.exact == 0 for line in lines.values())
    assert np.all([line.value for line in lines.values()])
