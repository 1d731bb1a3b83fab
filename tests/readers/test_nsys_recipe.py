"""Results of recipes: every form in which they come, what they are on the timeline, and what a broken one does."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inspector
from inspector.cli import main
from inspector.errors import InspectorError, Unreadable
from inspector.readers import nsys_recipe, reader_of
from inspector.readers.nsys_recipe import tables
from inspector.readers.nsys_recipe.place import Place
from inspector.trace.results import ResultTable
from inspector.trace.trace import Trace
from tests.readers.recipe_results import GAPS, LATER, PROJECTED, frames_of, write_results, zipped

pd = pytest.importorskip("pandas")
KNOWN = ("gpu_gaps", "cuda_gpu_kern_sum", "nvtx_gpu_proj_trace", "gpu_metric_util_map", "nccl_gpu_overlap_trace")


def table_of(trace: Trace, name: str) -> ResultTable:
    return next(table for results in trace.results for table in results.tables if table.name == name)


def rows_of(table: ResultTable) -> list[tuple[object, ...]]:
    return [tuple(column.at(row) for column in table.columns) for row in range(len(table))]


def column_of(table: ResultTable, name: str) -> list[object]:
    column = next(column for column in table.columns if column.name == name)
    return [column.at(row) for row in range(len(table))]


@pytest.mark.parametrize("recipe", [*KNOWN, "some_recipe_of_tomorrow"])
def test_every_cell_is_what_the_recipe_wrote(recipe: str, tmp_path: Path) -> None:
    frames = frames_of(recipe)
    trace = inspector.open(write_results(tmp_path / f"{recipe}-1", recipe, frames))
    (results,) = trace.results
    assert results.recipe == recipe
    assert results.reports == ("report0", "report1")
    assert {table.name for table in results.tables} == set(frames)
    for table in results.tables:
        frame = frames[table.name]
        labelled = frame if frame.index.name is None else frame.reset_index()
        for name in labelled.columns:
            wanted = [None if pd.isna(value) else value for value in labelled[name].tolist()]
            assert column_of(table, str(name)) == wanted
    assert trace.info.kind == "nsys-recipe"
    assert not trace.num_work()


def test_folder_description_zip_and_text_give_the_same(tmp_path: Path) -> None:
    recipe = "nvtx_gpu_proj_trace"
    folder = write_results(tmp_path / "out-1", recipe)
    text = write_results(tmp_path / "text", recipe, suffixes=(".csv",))
    ways = [folder, folder / "out-1.nsys-analysis", zipped(folder, tmp_path / "out.zip"), text, tmp_path]
    found = [inspector.open(way) for way in ways]
    wanted = rows_of(table_of(found[0], "trace"))
    assert len(wanted) == 8
    for trace in found[1:3]:
        assert rows_of(table_of(trace, "trace")) == wanted
    # Text keeps the labels of pandas' rows as a column without a name.
    assert [row[1:] for row in rows_of(table_of(found[3], "trace"))] == [
        row[1:] for row in rows_of(table_of(found[0], "trace"))
    ]
    # One level up lie the results of two runs.
    assert [results.recipe for results in found[4].results] == [recipe, recipe]
    assert all(reader_of(way) is nsys_recipe for way in ways)


def test_results_without_their_description_are_known_by_their_folder(tmp_path: Path) -> None:
    trace = inspector.open(write_results(tmp_path / "gpu_gaps-12", "gpu_gaps", described=False))
    assert trace.results[0].recipe == "gpu_gaps"


@pytest.mark.parametrize(
    ("recipe", "table", "column", "unit"),
    [
        ("gpu_gaps", "analysis", "Duration (ns)", "ns"),
        ("cuda_gpu_kern_sum", "all_stats", "Mean", "ns"),
        ("cuda_gpu_kern_sum", "all_stats", "Count", ""),
        ("nvtx_gpu_proj_trace", "trace", "Projected Start", "ns"),
        ("gpu_metric_util_map", "analysis", "SMs Active", "%"),
        ("some_recipe_of_tomorrow", "analysis", "A thing", ""),
    ],
)
def test_units(recipe: str, table: str, column: str, unit: str, tmp_path: Path) -> None:
    trace = inspector.open(write_results(tmp_path / recipe, recipe))
    found = next(each for each in table_of(trace, table).columns if each.name == column)
    assert found.unit == unit


@pytest.mark.parametrize(("frame", "ends"), [(PROJECTED, [8_000, 3_000, 8_000, 9_500]), (LATER, [8_000, 3_000])])
def test_projected_ranges_lie_on_the_timeline_and_are_no_work(
    frame: dict[str, list[object]], ends: list[int], tmp_path: Path
) -> None:
    frames = frames_of("nvtx_gpu_proj_trace", 1) | {"trace": pd.DataFrame(frame).assign(Rank=0)}
    trace = inspector.open(write_results(tmp_path / "proj", "nvtx_gpu_proj_trace", frames))
    ranges = trace["ranges"]
    start = frame.get("Projected Start", frame.get("Start"))
    name = frame.get("Name", frame.get("Text"))
    order = sorted(range(len(ends)), key=lambda row: start[row])
    assert (ranges["start"] + trace.info.origin_ns).tolist() == [start[row] for row in order]
    assert (ranges["end"] + trace.info.origin_ns).tolist() == [ends[row] for row in order]
    assert [trace.names[at] for at in ranges["name"]] == [name[row] for row in order]
    assert trace["processes"]["pid"].tolist() == [77]
    assert set(trace["threads"]["tid"].tolist()) == set(frame["TID"])
    assert not trace.num_work()
    assert not len(trace["devices"])
    assert "kernels" in trace.info.missing


def test_gaps_of_each_gpu_and_report_are_rows_of_their_own(tmp_path: Path) -> None:
    trace = inspector.open(write_results(tmp_path / "gaps", "gpu_gaps"))
    names = {trace.names[at] for at in trace["threads"]["name"]}
    assert {name.split(":")[0] for name in names} == {"GPU 0", "GPU 1"}
    lengths = sorted((trace["ranges"]["end"] - trace["ranges"]["start"]).tolist())
    assert lengths == sorted(GAPS["Duration (ns)"] * 2)
    assert trace.quality.count("unaligned") == 1


def test_utilisation_becomes_counters_of_its_gpu(tmp_path: Path) -> None:
    trace = inspector.open(write_results(tmp_path / "map", "gpu_metric_util_map"))
    assert len(trace["devices"]) == 2  # GPU 0 of two reports
    series = trace["series"]
    (tensor, _) = [row for row in range(len(series)) if trace.names[series["name"][row]] == "Tensor Active"]
    samples = trace["counters"]["series"] == tensor
    assert trace["counters"]["value"][samples].tolist() == [0.0, 50.0, 99.9]
    assert trace["counters"]["time"][samples].tolist() == [0, 1_000_000, 2_000_000]


def test_rows_that_cannot_lie_in_time_are_counted_and_stay_in_the_table(tmp_path: Path) -> None:
    trace_frame = pd.DataFrame({"Text": ["a", "b", "c"], "Start": [5.0, None, 9.0], "End": [7.0, 8.0, 2.0], "PID": 1})
    frames = frames_of("nvtx_gpu_proj_trace", 1) | {"trace": trace_frame.assign(Rank=0)}
    trace = inspector.open(write_results(tmp_path / "proj", "nvtx_gpu_proj_trace", frames))
    assert len(trace["ranges"]) == 1
    assert trace.quality.count("invalid") == 1
    assert trace.quality.count("reversed") == 1
    assert len(table_of(trace, "trace")) == 3


def test_more_rows_than_can_be_looked_at_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 3)
    for suffix in (".parquet", ".csv"):
        folder = write_results(tmp_path / f"out{suffix}", "nvtx_gpu_proj_trace", suffixes=(suffix,))
        trace = inspector.open(folder)
        table = table_of(trace, "trace")
        assert (len(table), table.rows_in_file) == (3, 8)
        assert "the first 3 of 8 rows" in table.note
        assert any("the first 3 of 8" in note.text for note in trace.quality.find("ignored"))


def test_numbers_stay_exact_where_they_fit_no_column(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "odd", "odd")
    huge = [2**64 - 1, 2**63, 1]
    pq.write_table(
        pa.table({"huge": pa.array(huge, pa.uint64()), "list": [[1], None, [2, 3]], "raw": [b"\xff\x00", b"", None]}),
        folder / "odd.parquet",
    )
    table = table_of(inspector.open(folder), "odd")
    assert column_of(table, "huge") == [str(value) for value in huge]
    assert column_of(table, "list") == ["[1]", None, "[2, 3]"]
    assert column_of(table, "raw") == ["2 bytes", "0 bytes", None]


def test_controls_in_texts_and_headings_are_not_passed_on(tmp_path: Path) -> None:
    frames = frames_of("cuda_gpu_kern_sum")
    frames["evil"] = pd.DataFrame({"na\x1b[2Jme": ["\x1b]0;title\x07", "x" * 10_000]})
    trace = inspector.open(write_results(tmp_path / "evil", "cuda_gpu_kern_sum", frames))
    table = table_of(trace, "evil")
    texts = [table.columns[0].name, *map(str, column_of(table, table.columns[0].name))]
    assert all(text.isprintable() for text in texts)
    assert "6,000 more characters" in texts[2]


def test_a_table_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "some", "cuda_gpu_kern_sum")
    (folder / "rank_stats.parquet").write_bytes(b"PAR1 and no more")
    (folder / "ragged.csv").write_text("a,b\n1,2\n3\n4,5,6\n7,8\n")
    (folder / "some.nsys-analysis").write_text("[" * 100_000)
    trace = inspector.open(folder)
    assert {table.name for table in trace.results[0].tables} == {"all_stats", "files", "ragged"}
    assert rows_of(table_of(trace, "ragged")) == [(1, 2), (7, 8)]
    said = " ".join(note.text for note in trace.quality.notes)
    assert "rank_stats" in said
    assert "2 lines" in said
    assert "no JSON" in said


def test_links_out_of_a_zip_and_locked_members_are_not_followed(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "gpu_gaps", "gpu_gaps")
    head = json.loads((folder / "gpu_gaps.nsys-analysis").read_text())
    head["Outputs"] = {"../../../etc/passwd": "Data", "/etc/passwd": "Data"}
    (folder / "gpu_gaps.nsys-analysis").write_text(json.dumps(head))
    trace = inspector.open(zipped(folder, tmp_path / "gaps.zip"))
    assert {table.name for table in trace.results[0].tables} == {"analysis", "files"}


def test_what_is_no_result_is_not_claimed(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a/b.csv", "1,2\n")
    export = tmp_path / "export"
    export.mkdir()
    pq.write_table(pa.table({"id": [1], "value": ["x"]}), export / "StringIds.parquet")
    for path in (tmp_path / "x.txt", tmp_path / "other.zip", export):
        with pytest.raises(InspectorError) as raised:
            inspector.open(path)
        assert "recipe" not in str(raised.value)


def test_an_empty_run_says_what_is_the_matter(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    (folder / "empty.nsys-analysis").write_text('{"RecipeName": "gpu_gaps"}')
    with pytest.raises(Unreadable, match="there is no table beside it"):
        inspector.open(folder)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_archives_raise_nothing_but_what_users_are_told(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.getbasetemp() / "damaged"
    if not base.exists():
        zipped(write_results(base / "gpu_gaps", "gpu_gaps"), base / "whole.zip")
    raw = bytearray((base / "whole.zip").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = base / "broken.zip"
    path.write_bytes(raw[: data.draw(st.integers(1, len(raw)))])
    try:
        trace = inspector.open(path)
    except InspectorError:
        return
    assert trace.results


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1).map(str), st.text('ab,"\n 1.', min_size=1)), min_size=1
    )
)
def test_text_between_commas_reads_as_the_standard_library_reads_it(values: list[str | None]) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["v", "w"])
    writer.writerows([["" if value is None else value, "end"] for value in values])
    table = tables.read_table("t", io.BytesIO(out.getvalue().encode()), True, "")
    column = table.columns[0]
    found = [column.at(row) for row in range(len(table))]
    assert len(found) == len(values)
    for wanted, got in zip(values, found, strict=True):
        if wanted is None:
            assert got is None
        elif column.texts is not None:
            assert got == wanted.replace("\n", "\N{REPLACEMENT CHARACTER}")
        else:
            assert got is not None
            assert not isinstance(got, str)
            assert got == (int(wanted) if column.values.dtype.kind == "i" else float(wanted))


def test_a_place_gives_only_files_of_its_own(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "gpu_gaps", "gpu_gaps")
    place = Place(folder)
    assert all(not name.startswith(("/", "..")) for name in place.sizes)
    assert np.all([size > 0 for size in place.sizes.values()])


def test_summary_names_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_results(tmp_path / "out", "cuda_gpu_kern_sum")
    assert main(["summary", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "nsys recipe cuda_gpu_kern_sum over 2 reports" in said
    assert "rank_stats: 4 rows" in said
    assert main(["summary", str(folder), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert {table["name"] for table in found["tables"]} == {"all_stats", "rank_stats", "files"}


def test_results_of_several_folders_open_together(tmp_path: Path) -> None:
    trace = inspector.open(
        write_results(tmp_path / "gaps", "gpu_gaps"), write_results(tmp_path / "map", "gpu_metric_util_map")
    )
    assert [results.recipe for results in trace.results] == ["gpu_gaps", "gpu_metric_util_map"]


def test_rows_keep_their_place_beside_other_files(tmp_path: Path, sample_traces: Path) -> None:
    gaps = write_results(tmp_path / "gpu_gaps-1", "gpu_gaps")
    metrics = write_results(tmp_path / "gpu_metric_util_map-1", "gpu_metric_util_map")
    alone = inspector.open(gaps)
    together = inspector.open(sample_traces / "decode_server.sqlite", metrics, gaps)
    (spans,) = [table.spans for table in alone.results[0].tables if table.spans is not None]
    assert (spans.start + alone.info.origin_ns).tolist() == [1_000_000_000, 3_000_000_000] * 2
    assert (spans.end - spans.start).tolist() == [700_000_000, 600_000_000] * 2
    of_metrics, of_gaps = (next(t.spans for t in each.tables if t.spans is not None) for each in together.results)
    assert of_gaps.start.tolist() == spans.start.tolist()
    names = [together.names[int(together["threads"]["name"][thread])] for thread in of_gaps.thread]
    assert names == ["GPU 0: long idle", "GPU 1: long idle"] * 2
    owners = {together.device_name(int(device)) for device in of_metrics.device}
    assert not owners & {inspector.open(sample_traces / "decode_server.sqlite").device_name(0)}
