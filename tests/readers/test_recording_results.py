"""Results of recipes saved as a recording: the same tables when it is opened, whatever is done to its files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import inspector
from inspector.cli import main
from inspector.errors import InspectorError
from inspector.readers.recording import results as reading
from inspector.trace.arrow import write_columns, write_texts
from inspector.trace.results import ResultColumn, Results
from inspector.trace.save import save
from inspector.trace.trace import Trace
from tests.readers.recipe_results import frames_of, write_results

_RECIPES = ("gpu_gaps", "cuda_gpu_kern_sum", "nvtx_gpu_proj_trace", "gpu_metric_util_map", "recipe_of_tomorrow")


def values_of(column: ResultColumn) -> list[int | float | str | None]:
    return [column.at(row) for row in range(len(column))]


def all_of(found: tuple[Results, ...]) -> list[Any]:
    """Everything that they hold, as plain values."""
    return [
        (
            *(results.recipe, results.title, results.reports, results.details, results.description),
            [
                (
                    *(table.name, table.rows_in_file, table.note, table.report, len(table)),
                    [
                        (column.name, column.unit, column.meaning, column.is_moment, values_of(column))
                        for column in table.columns
                    ],
                    None if table.spans is None else [values.tolist() for values in vars(table.spans).values()],
                )
                for table in results.tables
            ],
        )
        for results in found
    ]


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return inspector.open(*(write_results(tmp_path / recipe, recipe, frames_of(recipe)) for recipe in _RECIPES))


def test_saved_results_open_as_they_were(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "a.inflight"
    save(trace, path)
    kept = inspector.open(path)
    assert all_of(kept.results) == all_of(trace.results)
    assert len(kept["ranges"]) == len(trace["ranges"])
    assert not kept.quality.find("ignored")
    save(kept, tmp_path / "b.inflight")
    assert all_of(inspector.open(tmp_path / "b.inflight").results) == all_of(trace.results)
    packed = Path(shutil.make_archive(str(tmp_path / "c"), "zip", path))
    assert all_of(inspector.open(packed).results) == all_of(trace.results)


def test_results_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_results(tmp_path / "sums", "cuda_gpu_kern_sum")
    assert main(["convert", str(folder), str(tmp_path / "a.inflight")]) == 0
    assert "3 tables of results" in capsys.readouterr().out
    assert main(["summary", str(tmp_path / "a.inflight"), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert [table["name"] for table in found["tables"]] == ["all_stats", "rank_stats", "files"]


def test_a_file_that_does_not_fit_costs_its_table_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.inflight"
    save(inspector.open(write_results(tmp_path / "gaps", "gpu_gaps")), path)
    numbers, texts = path / "result-0-0.arrow", path / "result-0-1-texts.arrow"
    (numbers_before, texts_before) = (numbers.read_bytes(), texts.read_bytes())

    def shown() -> list[str]:
        (results,) = inspector.open(path).results
        return [table.name for table in results.tables]

    assert shown() == ["analysis", "files"]
    numbers.unlink()
    assert shown() == ["files"]
    numbers.write_bytes(numbers_before[: len(numbers_before) // 2])
    assert shown() == ["files"]
    numbers.write_bytes(numbers_before)
    texts.unlink()
    write_texts(texts, ["one too few"])
    assert shown() == ["analysis"]
    texts.write_bytes(texts_before)
    columns = {name: np.array(values) for name, values in reading.read_columns(numbers)[0][0].items()}
    for name, wrong in (("thread", 99), ("end", -5), ("start", 1 << 62)):
        numbers.unlink()
        write_columns(numbers, {**columns, name: np.full_like(columns[name], wrong)})
        assert shown() == ["files"]
        assert "no place" in inspector.open(path).quality.find("invalid")[0].text
    monkeypatch.setattr(reading, "MOST_BYTES", 10)
    assert shown() == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_anywhere_raises_nothing_else(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    save(inspector.open(write_results(folder / "proj", "nvtx_gpu_proj_trace")), folder / "a.inflight")
    files = sorted(path for path in (folder / "a.inflight").iterdir())
    file = data.draw(
        st.sampled_from([path for path in files if path.name.startswith("result") or path.suffix == ".json"])
    )
    content = bytearray(file.read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    try:
        opened = inspector.open(folder / "a.inflight")
    except InspectorError:
        return
    for results in opened.results:
        for table in results.tables:
            assert all(len(column) == len(table) for column in table.columns)
            for column in table.columns:
                assert len(values_of(column)) == len(table)
