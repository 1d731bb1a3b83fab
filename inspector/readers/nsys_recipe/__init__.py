"""Results of `nsys recipe`: the folder that it leaves, the .nsys-analysis file in it, or a zip of one or several.

Written from the documentation and from column names seen in public; no folder that nsys itself wrote was at hand. The
tables are shown as they are; what of them lies in time on a GPU is drawn too, as ranges that enter no sum.
"""

from __future__ import annotations

from pathlib import Path

from inspector.errors import Unreadable
from inspector.readers.nsys_recipe.header import Head, read_head
from inspector.readers.nsys_recipe.intervals import add_intervals
from inspector.readers.nsys_recipe.meaning import RECIPES
from inspector.readers.nsys_recipe.place import ANALYSIS, ZIP_MAGIC, Place, Run
from inspector.readers.nsys_recipe.tables import read_table
from inspector.readers.reader import Progress, Report
from inspector.trace.builder import Builder
from inspector.trace.quality import Quality
from inspector.trace.results import Results, ResultTable
from inspector.trace.schema import WORK_TABLES
from inspector.trace.trace import Trace, TraceInfo

NAME = "nsys-recipe"
SUFFIXES = (ANALYSIS,)

_MOST_RUNS = 64
_FILES = "files"
_WHY = "results of a recipe hold no records; open the report that it was run over"


def sniff(head: bytes, path: Path) -> float:
    """Certainty that `path` holds results, by its name or by what is in it."""
    if path.name.endswith(ANALYSIS) and head.lstrip()[:1] == b"{":
        return 1.0
    if head and not head.startswith(ZIP_MAGIC):
        return 0.0
    try:
        place = Place(path)
    except Unreadable:
        return 0.0
    try:
        return 0.8 if place.runs() else 0.0
    finally:
        place.close()


def read(path: Path, report: Report) -> Trace:
    """All results there. Raises Unreadable when not one table can be read, Cancelled."""
    builder = Builder()
    place = Place(path)
    try:
        runs = place.runs()
        if len(runs) > _MOST_RUNS:
            builder.quality.add("ignored", "more results than can be shown", len(runs) - _MOST_RUNS)
        found = []
        for at, run in enumerate(runs[:_MOST_RUNS]):
            report(Progress("recipe results", at, len(runs)))
            found.append(_read_run(place, run, builder.quality))
    finally:
        place.close()
    if not any(results.tables for results in found):
        why = builder.quality.notes[0].text if builder.quality.notes else "there is no table beside it"
        raise Unreadable(f"{path} holds no results that can be read", why, "run the recipe again")
    numbers: dict[tuple[int, int], int] = {}
    for at, results in enumerate(found):
        found[at] = add_intervals(builder, results, numbers)
        if len(results.reports) > 1 and results.recipe in ("nvtx_gpu_proj_trace", "gpu_gaps"):
            builder.quality.add("unaligned", f"{results.recipe}: times of each report are counted from its own start")
    details = dict(found[0].details) if len(found) == 1 else {}
    details["recipe"] = ", ".join(results.recipe for results in found)
    info = TraceInfo(
        (str(path),),
        NAME,
        "nsys recipe " + details["recipe"],
        found[0].details.get("recipe file version", ""),
        basis="simulated" if any(_is_simulated(results) for results in found) else "measured",
        details=details,
        missing=dict.fromkeys(WORK_TABLES, _WHY),
    )
    trace = builder.build(info)
    trace.results = tuple(results.moved(-trace.info.origin_ns) for results in found)
    return trace


def _read_run(place: Place, run: Run, quality: Quality) -> Results:
    head = Head()
    if run.analysis is not None:
        try:
            with place.open(run.analysis) as file:
                head = read_head(file)
        except Unreadable as error:
            head = Head(trouble=str(error))
        if head.trouble:
            quality.add("invalid", f"{run.analysis} says nothing: {head.trouble}")
    recipe = _recipe(head, run)
    tables = []
    for name, where in run.tables.items():
        try:
            with place.open(where) as file:
                tables.append(read_table(name, file, where.endswith(".csv"), recipe))
        except Unreadable as error:
            quality.add("invalid", f"not shown: {error}")
            continue
        if tables[-1].note:
            quality.add("ignored", f"{where}: {tables[-1].note}")
    # What they were run over comes last: it is looked up, not looked at.
    tables.sort(key=lambda table: table.name == _FILES)
    known = RECIPES.get(recipe)
    description = known.description if known is not None else ""
    return Results(recipe, head.title or recipe, tuple(tables), _reports(tables), dict(head.details), description)


def _is_simulated(results: Results) -> bool:
    """Whether the reports were, which our own recipe tells."""
    columns = [c for table in results.tables if table.name == _FILES for c in table.columns if c.name == "Basis"]
    return any("simulated" in column.texts for column in columns if column.texts is not None)


def _recipe(head: Head, run: Run) -> str:
    words = [head.recipe, run.name, *(run.analysis or "").rpartition("/")[2].removesuffix(ANALYSIS).split()[:1]]
    plain = ["_".join(word.lower().replace("-", " ").split()) for word in words if word]
    return next((word for word in plain if word in RECIPES), plain[0] if plain else "recipe")


def _reports(tables: list[ResultTable]) -> tuple[str, ...]:
    files = next((table for table in tables if table.name == _FILES), None)
    column = next((c for c in files.columns if c.texts is not None), None) if files is not None else None
    if files is None or column is None:
        return ()
    order = range(len(files))
    if files.report >= 0:
        numbers = {files.columns[files.report].at(row): row for row in order}
        order_by_number = [numbers.get(number) for number in range(len(files))]
        return tuple(str(column.at(row)) if row is not None else "" for row in order_by_number)
    return tuple(str(column.at(row)) for row in order)
