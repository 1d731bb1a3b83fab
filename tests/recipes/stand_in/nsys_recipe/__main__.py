"""`nsys recipe NAME ...`: finds the recipe, and runs it in one of the three modes."""

from __future__ import annotations

import importlib
import inspect
import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from nsys_recipe.lib.recipe import Recipe


class InTurn:
    def map(self, function: Callable[..., Any], *items: Any, **more: Any) -> list[Any]:
        return [function(*each, **more) for each in zip(*items, strict=True)]

    def wait(self, results: list[Any]) -> list[Any]:
        return results


class AtOnce:
    """Other processes, started anew: what they are given and give back is pickled."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))

    def map(self, function: Callable[..., Any], *items: Any, **more: Any) -> list[Any]:
        return [self._pool.submit(function, *each, **more) for each in zip(*items, strict=True)]

    def wait(self, futures: list[Any]) -> list[Any]:
        return [future.result() for future in futures]


class OnDask:
    def __init__(self) -> None:
        from distributed import Client

        self._client = Client(n_workers=2, threads_per_worker=1, dashboard_address=None)

    def map(self, function: Callable[..., Any], *items: Any, **more: Any) -> Any:
        return self._client.map(function, *items, **more)

    def wait(self, futures: Any) -> Any:
        return self._client.gather(futures)


def main(name: str, words: list[str]) -> None:
    folder = next(
        path
        for place in (*os.environ.get("NSYS_RECIPE_PATH", "").split(os.pathsep), os.getcwd())
        if (path := Path(place) / name) and (path / "metadata.json").is_file()
    )
    module_name = json.loads((folder / "metadata.json").read_text())["module_name"]
    sys.path.insert(0, str(folder))
    module = importlib.import_module(module_name)
    (found,) = [
        each
        for _, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, Recipe) and each.__module__ == module_name
    ]
    args = found.get_argument_parser().parse_args(words)
    context = {"none": InTurn, "concurrent": AtOnce, "dask-futures": OnDask}[args.mode]()
    found(args).run(context)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
