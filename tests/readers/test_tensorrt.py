"""Layer and profile files of each generation of TensorRT, whole, alone, together and wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.analysis.layers import LayerTables
from inspector.errors import Unreadable, Usage
from inspector.readers import open_trace, reader_of
from inspector.readers.tensorrt import sniff
from inspector.trace.layers import EngineLayers
from inspector.trace.save import save
from inspector.trace.trace import Trace
from tests.readers import engine_layers as files


def engine_of(trace: Trace) -> EngineLayers:
    (engine,) = trace.layers
    return engine


def notes(trace: Trace, code: str) -> int:
    return trace.quality.count(code)


def test_names_alone_say_what_they_can(tmp_path: Path) -> None:
    names = [files.COPY, "conv1 + relu1", "PWN(PWN(/Sub), PWN(/Div))", "{ForeignNode[/a.../b]}"]
    trace = open_trace(files.write(tmp_path / "l.json", files.named(names)))
    engine = engine_of(trace)
    assert trace.info.kind == "tensorrt"
    assert [layer.name for layer in engine.layers] == names
    assert [layer.sources for layer in engine.layers] == [(), ("conv1", "relu1"), ("/Sub", "/Div"), ("/a", "/b")]
    assert [layer.has_more for layer in engine.layers] == [False, False, False, True]
    assert [layer.nbytes for layer in engine.layers] == [None] * 4
    assert [layer.launches for layer in engine.layers] == [None] * 4
    assert engine.layers[0].is_reformat
    assert "profilingVerbosity" in trace.quality.find("absent")[0].text


def test_8_2_is_read(tmp_path: Path) -> None:
    engine = engine_of(open_trace(files.write(tmp_path / "l.json", files.detailed(files.of_8_2()))))
    pointwise, gemm = engine.layers
    assert pointwise.sources == ("relu_1", "add_1")
    assert pointwise.nbytes == 2 * 20 * 2
    assert gemm.precision == "INT8"
    assert gemm.nbytes == 16 * 512 * 28 * 28 + 16 * 256 * 28 * 28 + 131072 + 4 * 256
    assert gemm.tactic == "sm80_xmma_fprop_implicit_gemm"
    assert pointwise.tactic == ""
    assert "Operations: [const auto var0" in pointwise.attributes


def test_8_6_is_read(tmp_path: Path) -> None:
    engine = engine_of(open_trace(files.write(tmp_path / "l.json", files.detailed(files.of_8_6()))))
    copy, convolution, quantize, shape, foreign = engine.layers
    assert [layer.is_reformat for layer in engine.layers] == [True, False, False, False, False]
    assert copy.tactic == "0x00000000000003ea"
    assert convolution.sources == ("/conv1/Conv", "/relu1/Relu")
    assert convolution.sources_from == "metadata"
    assert convolution.weight_bytes == 2 * 112
    assert quantize.sources == ("/q/QuantizeLinear",)
    assert (shape.launches, shape.nbytes) == (False, 0)
    assert foreign.nbytes == 256 + 2 * 256  # what lies in host memory is not moved on the device
    assert foreign.has_more


def test_10_is_read(tmp_path: Path) -> None:
    engine = engine_of(open_trace(files.write(tmp_path / "l.json", files.detailed(files.of_10()))))
    gemm, norm, wait = engine.layers
    assert gemm.sources == ("/mlp/fc1/MatMul", "/mlp/fc1/Add")
    assert (gemm.precision, norm.precision) == ("FP16", "BF16")
    assert norm.nbytes == 40 * 256 * 2 + 40 * 8 + 40 * 256
    assert (norm.stream, wait.launches) == (1, False)


def test_layers_in_a_bare_list_and_a_single_one_open_too(tmp_path: Path) -> None:
    bare = open_trace(files.write(tmp_path / "l.json", json.dumps(files.of_10())))
    assert len(engine_of(bare).layers) == 3
    single = open_trace(files.write(tmp_path / "one.json", json.dumps(files.of_10()[0])))
    assert engine_of(single).layers[0].type == "gemm"


def test_keys_in_another_order_open_too(tmp_path: Path) -> None:
    text = json.dumps({"Bindings": ["x"], "Layers": files.of_10()}, sort_keys=True, indent=1)
    assert len(engine_of(open_trace(files.write(tmp_path / "l.json", text))).layers) == 3


def test_a_profile_alone_has_times_and_nothing_else(tmp_path: Path) -> None:
    path = files.write(tmp_path / "p.json", files.profile([(files.COPY, 0.25), ("conv1 + relu1", 0.75)], 641))
    trace = open_trace(path)
    (of,) = trace.index(LayerTables).engines
    assert of.engine.iterations == 641
    assert of.figures.total_ns == pytest.approx(1_000_000)
    assert of.figures.reformat_ns == pytest.approx(250_000)
    assert (of.figures.bytes, of.figures.launches) == (None, 2)
    assert [layer.sources for layer in of.engine.layers] == [(), ("conv1", "relu1")]
    assert of.figures.by_precision == {"unknown": pytest.approx(1_000_000)}


@pytest.mark.parametrize("turned", [False, True])
def test_layers_and_profile_are_one_engine_in_any_order(tmp_path: Path, turned: bool) -> None:
    layers = files.write(tmp_path / "l.json", files.detailed(files.of_8_6()))
    times = [(layer["Name"], 0.1 * at) for at, layer in enumerate(files.of_8_6())] + [("[trainStation1]", 0.6)]
    profile = files.write(tmp_path / "p.json", files.profile(times, median=False))
    trace = open_trace(*((profile, layers) if turned else (layers, profile)))
    (of,) = trace.index(LayerTables).engines
    assert of.engine.title == "l.json + p.json"
    assert [layer.name for layer in of.engine.layers][-1] == "[trainStation1]"
    assert not of.engine.layers[-1].is_listed
    assert of.figures.total_ns == pytest.approx(1_600_000)
    assert notes(trace, "unlinked") == 1
    assert notes(trace, "unaligned") == 0
    shares = next(column for column in of.table.columns if column.name == "Share")
    assert sum(float(each) for each in shares.values) == pytest.approx(100)
    medians = next(column for column in of.table.columns if column.name == "Median")
    assert medians.absent is not None
    assert medians.absent.all()


def test_a_copy_that_took_no_time_launches_nothing_and_moves_nothing(tmp_path: Path) -> None:
    layers = files.write(tmp_path / "l.json", files.detailed(files.of_8_6()))
    profile = files.write(tmp_path / "p.json", files.profile([(files.COPY, 0), ("conv1 + relu1", 1)]))
    (of,) = open_trace(layers, profile).index(LayerTables).engines
    assert of.engine.layers[0].launches is False
    assert of.engine.layers[0].nbytes == 0
    assert of.figures.untimed == 2  # the quantizing one and the foreign node; what launches nothing needs no time


def test_before_and_after_stay_two_engines_each_with_its_profile(tmp_path: Path) -> None:
    before = files.write(tmp_path / "before.json", files.named(["conv1", "relu1", "fc"]))
    after = files.write(tmp_path / "after.json", files.named(["conv1 + relu1", "fc"]))
    slow = files.write(tmp_path / "slow.json", files.profile([("conv1", 1), ("relu1", 1), ("fc", 1)]))
    fast = files.write(tmp_path / "fast.json", files.profile([("conv1 + relu1", 1), ("fc", 1)]))
    trace = open_trace(before, after, fast, slow)
    assert [engine.title for engine in trace.layers] == ["before.json + slow.json", "after.json + fast.json"]
    assert [of.figures.total_ns for of in trace.index(LayerTables).engines] == [3_000_000, 2_000_000]
    assert notes(trace, "unlinked") == 0


def test_a_profile_of_another_engine_is_not_joined(tmp_path: Path) -> None:
    layers = files.write(tmp_path / "l.json", files.named(["a"]))
    profile = files.write(tmp_path / "p.json", files.profile([("b", 1)]))
    trace = open_trace(layers, profile)
    assert [engine.name for engine in trace.layers] == ["l.json", "p.json"]
    assert notes(trace, "unlinked") == 1


def test_optimization_profiles_are_engines_of_their_own(tmp_path: Path) -> None:
    layers = files.write(
        tmp_path / "l.json", files.named(["a", "b", "a [profile 1]", "b [profile 1]", "c [profile 1]"])
    )
    trace = open_trace(layers)
    assert [len(engine.layers) for engine in trace.layers] == [2, 3]
    assert trace.layers[1].name.endswith("optimization profile 1")


def test_layers_beside_a_trace_leave_its_clock_and_records_alone(tmp_path: Path, sample_traces: Path) -> None:
    alone = open_trace(sample_traces / "decode_server.sqlite")
    both = open_trace(files.write(tmp_path / "l.json", files.named(["a"])), sample_traces / "decode_server.sqlite")
    assert both.info.kind == alone.info.kind
    assert both.info.start_epoch_ns == alone.info.start_epoch_ns
    assert len(both["kernels"]) == len(alone["kernels"])
    assert (both["kernels"]["start"] == alone["kernels"]["start"]).all()
    assert notes(both, "unaligned") == 0
    assert engine_of(both).layers[0].name == "a"


def test_dynamic_shapes_are_unknown_and_said_so(tmp_path: Path) -> None:
    layer = files.of_10()[0]
    layer["Inputs"][0]["Dimensions"] = [-1, 40, 1024]
    layer["Outputs"][0]["Format/Datatype"] = "N/A due to dynamic shapes"
    trace = open_trace(files.write(tmp_path / "l.json", files.detailed([layer])))
    assert engine_of(trace).layers[0].nbytes is None
    assert notes(trace, "absent") == 2
    (of,) = trace.index(LayerTables).engines
    assert (of.figures.bytes, of.figures.unknown_bytes) == (None, 1)


def test_where_shapes_are_dynamic_the_weights_tell_the_precision(tmp_path: Path) -> None:
    layer = files.of_8_2()[1]
    for side in ("Inputs", "Outputs"):
        layer[side][0]["Format/Datatype"] = "N/A due to dynamic shapes"
    assert (
        engine_of(open_trace(files.write(tmp_path / "l.json", files.detailed([layer])))).layers[0].precision == "INT8"
    )


def test_quotes_in_names_and_shares_of_nothing_are_mended(tmp_path: Path) -> None:
    text = files.profile([('say "hi"', 0), ("b", 0)])
    assert "-nan" in text
    trace = open_trace(files.write(tmp_path / "p.json", text))
    assert [layer.name for layer in engine_of(trace).layers] == ['say "hi"', "b"]
    assert notes(trace, "repaired") == 2
    assert notes(trace, "invalid") == 0


def test_layers_cannot_be_saved_as_records(tmp_path: Path) -> None:
    trace = open_trace(files.write(tmp_path / "l.json", files.named(["a"])))
    with pytest.raises(Usage, match="no records"):
        save(trace, tmp_path / "out.inflight")


def test_files_of_other_programs_are_not_taken(tmp_path: Path, sample_traces: Path) -> None:
    others = [
        '{"traceEvents": [{"ph": "X", "name": "Layers"}]}',
        '[{"ph": "X", "name": "a", "ts": 1}]',
        '{"layers": [{"name": "dense"}]}',
        '{"name": "layer", "versions": {"layer": "4.5"}}',
        '[{"startEnqMs": 1, "endEnqMs": 2}]',
        '[{"count": 3, "timeMs": 1}]',
        '[{"name": "a", "elapsed": 3}]',
        '{"model_type": "llama", "num_hidden_layers": 2}',
        "[]",
        "{}",
        "",
    ]
    for text in others:
        assert sniff(text.encode(), tmp_path / "x.json") == 0, text
    for path in sample_traces.iterdir():
        head = path.read_bytes()[: 1 << 16] if path.is_file() else b""
        assert sniff(head, path) == 0, path


def test_our_files_go_to_this_reader(tmp_path: Path) -> None:
    texts = [
        files.named(["traceEvents"]),
        files.detailed(files.of_8_2()),
        files.profile([("a", 1)]),
        files.profile([]),
        "\ufeff" + files.named(["a"]),
        json.dumps(files.of_10()),
    ]
    for at, text in enumerate(texts):
        assert reader_of(files.write(tmp_path / f"{at}.json", text)).NAME == "tensorrt", text[:60]


def test_a_file_without_a_layer_is_refused_with_a_reason(tmp_path: Path) -> None:
    for text in ('{"Layers": []}', files.profile([]), '{"Layers": [{"Name": '):
        with pytest.raises(Unreadable, match="no layers"):
            open_trace(files.write(tmp_path / "l.json", text))
