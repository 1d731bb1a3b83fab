"""Layer and profile files that are cut, wrong, huge, or made to be a burden."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.analysis.layers import LayerTables
from inspector.errors import Cancelled, Unreadable
from inspector.readers import open_trace
from inspector.readers.reader import Progress
from inspector.readers.tensorrt import document, scan
from inspector.readers.tensorrt.document import read_document
from inspector.readers.tensorrt.formats import bytes_of, precision_of
from inspector.readers.tensorrt.scan import Broken, Scan
from inspector.readers.tensorrt.sources import sources_of_metadata, sources_of_name
from inspector.trace.quality import Quality
from tests.readers import engine_layers as files


def read(text: str | bytes) -> tuple[document.Document, Quality]:
    quality = Quality()
    data = text.encode() if isinstance(text, str) else text
    return read_document(Scan(io.BytesIO(data)), quality), quality


@pytest.mark.parametrize("text", [files.detailed(files.of_8_6()), files.named(["a", "b + c"])])
def test_a_file_that_breaks_off_keeps_what_is_whole(text: str) -> None:
    whole = read(text)[0].layers
    before = 0
    for end in range(len(text)):
        found, quality = read(text[:end])
        assert found.layers == whole[: len(found.layers)]
        assert len(found.layers) >= before
        before = len(found.layers)
        if end < text.index('],\n"Bindings"') and end > len('{"Layers": ['):
            assert quality.count("truncated") == 1
            assert quality.count("invalid") == 0
    assert before == len(whole)


def test_a_profile_that_breaks_off_keeps_what_is_whole() -> None:
    text = files.profile([("a", 1), ("b", 2)])
    for end in range(text.index("}") + 1, len(text) - 3):
        found, quality = read(text[:end])
        assert [layer.name for layer in found.times] == ["a", "b"][: len(found.times)]
        assert quality.count("truncated") == 1


def test_one_wrong_layer_costs_no_other() -> None:
    layers = files.of_8_6()
    text = files.detailed(layers).replace('"StreamId": 0,', '"StreamId": 0 0,', 1)
    found, quality = read(text)
    assert [layer.name for layer in found.layers] == [layer["Name"] for layer in layers[1:]]
    assert quality.count("invalid") == 1


ODD: list[Any] = [None, True, 1, 1.5, "x", [], {}, [1], [[1]], {"a": 1}, -1, 10**30, "\x00\x1b[2J", "Ä" * 10]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.randoms(use_true_random=False))
def test_odd_values_anywhere_raise_nothing_and_are_no_figures(source: random.Random) -> None:
    layers: list[Any] = [*files.of_8_2(), *files.of_8_6(), *files.of_10()]
    for _ in range(source.randint(1, 8)):
        where: Any = layers
        while isinstance(where, list | dict) and where:
            key = source.choice(list(where) if isinstance(where, dict) else range(len(where)))
            if source.random() < 0.3 or not isinstance(where[key], list | dict):
                where[key] = source.choice(ODD)
                break
            where = where[key]
    found, _ = read(json.dumps({"Layers": layers}))
    for layer in found.layers:
        assert layer.nbytes is None or 0 <= layer.nbytes < 1 << 56
        assert layer.stream >= -1
        assert isinstance(layer.name, str)


@pytest.mark.parametrize("value", ["-1", "1e400", "NaN", '"1"', "null", "true", "-Infinity", "1e12"])
def test_times_that_are_none_are_unknown(value: str) -> None:
    found, quality = read(f'[{{"count": 3}}, {{"name": "a", "timeMs": {value}, "averageMs": {value}}}]')
    (layer,) = found.times
    assert layer.times is not None
    assert layer.times.average_ns is None
    assert layer.launches is None
    assert quality.count("invalid") == 2


def test_absurd_shapes_have_no_bytes() -> None:
    assert bytes_of([1 << 40, 1 << 40], "FP32") is None
    assert bytes_of([-1, 2], "FP16") is None
    assert bytes_of([3], "INT4") == 2
    assert bytes_of([], "FP32") == 4
    assert bytes_of([0, 5], "FP32") == 0
    assert bytes_of(None, "FP32") is None
    layer = files.of_10()[0]
    layer["Inputs"][0]["Dimensions"] = [1] * 1000
    found, quality = read(files.detailed([layer]))
    assert found.layers[0].nbytes is None
    assert quality.count("invalid") == 1


def test_a_format_without_end_is_none() -> None:
    layer = files.of_10()[0]
    layer["Inputs"][0]["Format/Datatype"] = "Half" + " x" * 10_000
    found, quality = read(files.detailed([layer]))
    assert found.layers[0].nbytes is None
    assert quality.count("invalid") == 1
    assert precision_of("x " * 1_000 + "Half") == ""


def test_deep_nesting_is_passed_over() -> None:
    deep = '{"Name": ' + "[" * 200_000
    found, quality = read('{"Layers": ["a"\n,' + deep + '\n,"b"\n]}')
    assert [layer.name for layer in found.layers] == ["a", "b"]
    assert quality.count("invalid") == 1


def test_what_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "WINDOW", 64)
    monkeypatch.setattr(scan, "LONGEST", 512)
    text = '{"Layers": ["a"\n,"' + "x" * 5_000 + '\n,"b"\n]}'
    found, quality = read(text)
    assert [layer.name for layer in found.layers] == ["a", "b"]
    assert quality.count("invalid") == 1
    assert all(len(note.first) <= 200 for note in quality.notes)


def test_a_file_of_nothing_but_wrong_elements_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "_MOST_BROKEN", 5)
    found, quality = read('{"Layers": ["a"' + '\n,{"x":[{"y" 1' * 100 + '\n,"b"\n]}')
    assert [layer.name for layer in found.layers] == ["a"]
    assert any("not tried" in note.text for note in quality.notes)


def test_more_layers_than_are_read_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MOST_LAYERS", 3)
    found, quality = read(files.named(list("abcdef")))
    assert [layer.name for layer in found.layers] == ["a", "b", "c"]
    assert quality.count("truncated") == 1


def test_text_that_is_not_utf_8_is_read_and_said() -> None:
    found, quality = read(files.named(["a", "b"]).encode().replace(b'"b"', b'"b\xff"'))
    assert [layer.name for layer in found.layers] == ["a", "b\ufffd"]
    assert quality.count("encoding") == 1


@given(st.lists(st.text(max_size=12), max_size=12), st.integers(1, 40))
def test_windows_of_any_size_read_the_same(names: list[str], window: int) -> None:
    text = '{"Layers": [' + "\n,".join(json.dumps(name, ensure_ascii=False) for name in names) + "\n]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "WINDOW", window)
        found, quality = read(text)
    assert [layer.name for layer in found.layers] == names
    assert quality.count("truncated") == quality.count("invalid") == quality.count("encoding") == 0


def test_broken_stays_where_it_is() -> None:
    place = Scan(io.BytesIO(b' {"a" 1}'))
    with pytest.raises(Broken):
        place.value()
    assert place.take("{")


def test_reading_can_be_stopped(tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        raise Cancelled

    path = files.write(tmp_path / "l.json", files.named(["a"]))
    with pytest.raises(Cancelled):
        open_trace(path, report=stop)


def test_two_hundred_thousand_layers_are_read() -> None:
    found, quality = read(files.named([f"/layers.{at}/MatMul + /layers.{at}/Add" for at in range(200_000)]))
    assert len(found.layers) == 200_000
    assert found.layers[-1].sources == ("/layers.199999/MatMul", "/layers.199999/Add")
    assert quality.notes == []


def test_a_large_engine_is_read_whole(tmp_path: Path) -> None:
    count = 20_000
    names = [f"/layers.{at}/MatMul + /layers.{at}/Add" for at in range(count)]
    layers = files.write(tmp_path / "l.json", files.named(names))
    profile = files.write(tmp_path / "p.json", files.profile([(name, 0.001) for name in reversed(names)]))
    trace = open_trace(layers, profile)
    (of,) = trace.index(LayerTables).engines
    assert (of.figures.layers, of.figures.launches, of.figures.sources) == (count, count, 2 * count)
    assert of.figures.total_ns == pytest.approx(count * 1000)
    assert trace.quality.count("unlinked") == 0


def test_noise_is_refused_or_read_but_never_a_crash(tmp_path: Path) -> None:
    source = random.Random(4)
    texts = [files.detailed(files.of_8_6()), files.named(["a + b", "c"]), files.profile([("a", 1), ("b", 2)])]
    rounds, refused = 300, 0
    for round_ in range(rounds):
        data = bytearray(source.choice(texts).encode())
        for _ in range(source.randint(1, 6)):
            data[source.randrange(len(data))] = source.randrange(256)
        path = tmp_path / f"{round_}.json"
        path.write_bytes(bytes(data))
        try:
            found = open_trace(path).index(LayerTables)
        except Unreadable:
            refused += 1
        else:
            assert all(of.figures.layers == len(of.table) for of in found.engines)
    assert 0 < refused < rounds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Row major linear FP32", "FP32"),
        ("Row major linear FP16 format", "FP16"),
        ("Half", "FP16"),
        ("Row major linear BFloat16 format", "BF16"),
        ("Channel major FP16 format where channel % 8 == 0", "FP16"),
        ("Thirty-two wide channel vectorized row major Int8 format.", "INT8"),
        ("Channel major INT8 format where column stride % 32 == 0", "INT8"),
        ("Row major linear UInt8 format", "UINT8"),
        ("Row major linear Int64 format", "INT64"),
        ("Row major linear BOOL", "BOOL"),
        ("Row major linear FP8 format", "FP8"),
        ("FP4E2M1", "FP4"),
        ("Float", "FP32"),
        ("N/A due to dynamic shapes", ""),
        ("Unknown format", ""),
        ("", ""),
    ],
)
def test_formats_are_told_from_their_words(text: str, expected: str) -> None:
    assert precision_of(text) == expected


@pytest.mark.parametrize(
    ("name", "parts", "more"),
    [
        ("conv1", ("conv1",), False),
        ("conv1.weight + Quantize_20 + Conv_22", ("conv1.weight", "Quantize_20", "Conv_22"), False),
        ("c + PWN(/act/LeakyRelu)", ("c", "/act/LeakyRelu"), False),
        (
            "PWN((Unnamed Layer* 112) [ElementWise], PWN(PWN((Unnamed Layer* 109) [Constant] + "
            "(Unnamed Layer* 110) [ElementWise], (Unnamed Layer* 111) [Unary]), (Unnamed Layer* 113) [ElementWise]))",
            (
                "(Unnamed Layer* 112) [ElementWise]",
                "(Unnamed Layer* 109) [Constant]",
                "(Unnamed Layer* 110) [ElementWise]",
                "(Unnamed Layer* 111) [Unary]",
                "(Unnamed Layer* 113) [ElementWise]",
            ),
            False,
        ),
        ("{ForeignNode[/a + /b.../c]}", ("/a", "/b", "/c"), True),
        ("Reformatting CopyNode for Output Tensor 0 to conv1 + relu1", (), False),
        ("__myl_AddCast_myl0_8", (), True),
        ("/fc1/MatMul+/fc2/MatMul_myl0_9", ("/fc1/MatMul", "/fc2/MatMul"), True),
        ("PWN(a", ("a",), False),
        ("a) + PWN(b)", ("a)", "b"), False),
    ],
)
def test_names_tell_their_parts(name: str, parts: tuple[str, ...], more: bool) -> None:
    assert sources_of_name(name) == (parts, more)


def _fused(tree: Any) -> str:
    return tree if isinstance(tree, str) else "PWN(" + ", ".join(_fused(each) for each in tree) + ")"


def _leaves(tree: Any) -> list[str]:
    return [tree] if isinstance(tree, str) else [leaf for each in tree for leaf in _leaves(each)]


@given(
    st.recursive(
        st.sampled_from(["/a/Relu", "(Unnamed Layer* 3) [Shuffle]", "x", "y"]),
        lambda inner: st.lists(inner, min_size=1, max_size=3),
        max_leaves=8,
    )
)
def test_nested_fusions_are_taken_apart(tree: Any) -> None:
    assert sources_of_name(_fused(tree))[0] == tuple(dict.fromkeys(_leaves(tree)))


@given(st.lists(st.text("abc/_.[0]", min_size=1, max_size=6), max_size=5), st.sampled_from(["\x1f", "\x1e", "", " "]))
def test_metadata_is_taken_apart(names: list[str], between: str) -> None:
    text = between.join(f"[ONNX Layer: {name}]" for name in names)
    assert sources_of_metadata(text) == tuple(dict.fromkeys(names))


def test_other_metadata_is_kept_as_it_is() -> None:
    assert sources_of_metadata("LLaMA/layers/0/mlp\x1fLLaMA/layers/0/act") == (
        "LLaMA/layers/0/mlp",
        "LLaMA/layers/0/act",
    )
