"""A recipe for `nsys recipe`: idle GPU time of many reports by the cause that Inflight Inspector finds for it.

    NSYS_RECIPE_PATH="$(inflight doctor --recipes)" nsys recipe inflight_gaps --input REPORTS/ [--mode dask-futures]

Each report is exported once into a temporary folder, read and analysed there by this program, in whatever process
nsys runs the mapper: only small tables come back. Written from the documentation of recipes and run against base
classes that stand in for nsys' own: it has never met the real ones.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from argparse import Namespace
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nsys_recipe
from nsys_recipe.lib import recipe
from nsys_recipe.lib.args import Option
from nsys_recipe.log import logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    Tables = dict[str, dict[str, list[Any]]]
    Mapped = tuple[str, dict[str, Any], Tables]

_LARGEST = 100
_NUMBERS = ("Epoch", "GPUs", "Idle")
_FILES = ("File", *_NUMBERS, "Basis", "Note")
_TABLES = ("devices", "causes", "largest")
_HOW = "no inflight-inspector in the Python that runs recipes ({}): {} -m pip install inflight-inspector"


class InflightGaps(recipe.Recipe):  # type: ignore[misc]
    """Maps a report to its tables of gaps, and lays those of all reports together."""

    @staticmethod
    def _mapper_func(report_path: str, parsed_args: Namespace) -> Mapped:
        """(name, facts of the report, its tables as columns); without tables where it cannot be analysed."""
        name = Path(report_path).stem
        try:
            facts, tables = _analysed(Path(report_path), parsed_args)
        except ImportError as error:
            return name, {"Note": _HOW.format(error, sys.executable)}, {}
        except _expected() as error:
            return name, {"Note": str(error)}, {}
        return name, facts, tables

    def mapper_func(self, context: Any) -> Any:
        """One result for each report, in whichever mode."""
        _let_travel()
        return context.wait(context.map(self._mapper_func, self._parsed_args.input, parsed_args=self._parsed_args))

    def reducer_func(self, mapper_res: Sequence[Mapped | None]) -> None:
        """Write the tables, by report and over all."""
        import pandas as pd

        results = sorted((result for result in mapper_res if result is not None), key=lambda result: result[0])
        files = pd.DataFrame(
            [[name, *(facts.get(key) for key in _FILES[1:])] for name, facts, _ in results], columns=list(_FILES)
        )
        files = files.astype(dict.fromkeys(_NUMBERS, "Int64")).rename_axis("Rank")
        for name, facts, _ in results:
            if facts.get("Note"):
                logger.error(f"{name}: {facts['Note']}")
        frames = {}
        for table in _TABLES:
            parts = [
                pd.DataFrame(tables[table]).assign(Rank=rank) for rank, (*_, tables) in enumerate(results) if tables
            ]
            for part in parts:
                if "Iteration" in part:
                    part["Iteration"] = part["Iteration"].astype("Int64")
            filled = [part for part in parts if len(part)] or parts[:1]
            frames[table] = pd.concat(filled, ignore_index=True) if filled else pd.DataFrame({"Rank": []})
        if "Duration" in frames["largest"]:
            frames["largest"] = frames["largest"].sort_values("Duration", ascending=False, kind="stable")
        self._write("all_causes", _over_all(frames["causes"]))
        for table in _TABLES:
            self._write(table, frames[table], index=False)
        self._write("files", files)

    def save_notebook(self) -> None:
        """The notebook that shows the tables."""
        self.create_notebook("gaps.ipynb")

    def save_analysis_file(self) -> None:
        """What was made, for those who open the folder."""
        self._analysis_dict.update({"EndTime": str(datetime.now()), "Outputs": self._output_files})
        self.create_analysis_file()

    def run(self, context: Any) -> None:
        """All of it."""
        super().run(context)
        self.reducer_func(self.mapper_func(context))
        self.save_notebook()
        self.save_analysis_file()

    @classmethod
    def get_argument_parser(cls) -> Any:
        """What can be asked for beside what all recipes know."""
        parser = super().get_argument_parser()
        parser.add_recipe_argument(Option.INPUT, required=True)
        parser.add_recipe_argument(Option.CSV)
        group = parser.recipe_group
        group.add_argument("--largest", type=int, default=_LARGEST, help="how many of the longest gaps of each report")
        group.add_argument("--min-us", type=float, default=0.0, help="gaps shorter than so many µs as one sum")
        group.add_argument("--from-ns", type=int, help="only from this time of each report on")
        group.add_argument("--to-ns", type=int, help="only up to this time of each report")
        return parser

    def _write(self, name: str, frame: pd.DataFrame, index: bool = True) -> None:
        frame.to_parquet(self.add_output_file(f"{name}.parquet"), index=index)
        if self._parsed_args.csv:
            frame.to_csv(self.add_output_file(f"{name}.csv"), index=index)


def _let_travel() -> None:
    """Workers of Dask on other hosts need not have this file: it is sent to them with the work."""
    module = sys.modules.get(__name__)
    with suppress(ImportError):
        import cloudpickle

        if module is not None:
            cloudpickle.register_pickle_by_value(module)


def _analysed(report: Path, parsed_args: Namespace) -> tuple[dict[str, Any], Tables]:
    """The facts of a report and its tables. Raises ImportError, and what the program says to its users."""
    import inspector
    from inspector.analysis.gap_tables import gap_tables
    from inspector.trace.selection import Window

    _find_nsys()
    with tempfile.TemporaryDirectory(prefix="inflight_gaps-") as scratch:
        trace = inspector.open(_exported(report, Path(scratch)))
        origin, window = trace.info.origin_ns, None
        if parsed_args.from_ns is not None or parsed_args.to_ns is not None:
            begin = 0 if parsed_args.from_ns is None else max(parsed_args.from_ns - origin, 0)
            end = trace.end_ns if parsed_args.to_ns is None else parsed_args.to_ns - origin
            window = Window(begin, max(end, begin))
        tables = gap_tables(trace, max(parsed_args.largest, 0), round(max(parsed_args.min_us, 0) * 1000), window)
        epoch = trace.info.start_epoch_ns
    idle = sum(tables["devices"]["Idle"])
    why = trace.info.missing.get("kernels", "no work on a GPU in it")
    note = "" if tables["devices"]["GPU"] else why
    facts = {"GPUs": len(tables["devices"]["GPU"]), "Idle": idle, "Basis": trace.info.basis, "Note": note}
    # The wall clock of time 0 of the report, so that the rows of several can be laid side by side.
    return facts | ({} if epoch is None else {"Epoch": epoch - origin}), tables


def _exported(report: Path, scratch: Path) -> Path:
    """An export of a report that this process alone uses; what is no report is read as it is."""
    from inspector.readers import nsys_rep, reader_of

    if reader_of(report).NAME != nsys_rep.NAME:
        return report
    return nsys_rep.export(report, scratch / "export")


def _find_nsys() -> None:
    """The nsys that runs this recipe comes first: a report needs one that is not older than itself."""
    # <install>/target-linux-x64/python/packages/nsys_recipe/__init__.py
    program = Path(nsys_recipe.__file__).resolve().parents[3] / "nsys"
    folders = os.environ.get("PATH", "")
    if shutil.which(str(program)) and str(program.parent) not in folders.split(os.pathsep):
        os.environ["PATH"] = f"{program.parent}{os.pathsep}{folders}"


def _expected() -> type[Exception]:
    """The class of the errors that users are told."""
    from inspector.errors import InspectorError

    return InspectorError


def _over_all(causes: pd.DataFrame) -> pd.DataFrame:
    """Idle by cause over all GPUs of all reports, largest first."""
    import pandas as pd

    found: pd.DataFrame
    if "Cause" not in causes:
        found = pd.DataFrame({"Idle": [], "Gaps": [], "Longest": [], "Share (%)": []}, dtype="int64")
        found.index.name = "Cause"
        return found
    found = causes.groupby("Cause").agg(Idle=("Idle", "sum"), Gaps=("Gaps", "sum"), Longest=("Longest", "max"))
    found["Share (%)"] = 100 * found["Idle"] / max(int(found["Idle"].sum()), 1)
    found = found.sort_values("Idle", ascending=False, kind="stable")
    return found
