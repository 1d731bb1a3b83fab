"""The base class of recipes."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from nsys_recipe.lib.args import ArgumentParser


class Recipe:
    def __init__(self, parsed_args: argparse.Namespace) -> None:
        self._parsed_args = parsed_args
        self._output_dir = Path(parsed_args.output)
        self._output_dir.mkdir()
        self._output_files: dict[str, str] = {}
        self._analysis_dict: dict[str, Any] = {}

    @classmethod
    def get_argument_parser(cls) -> ArgumentParser:
        return ArgumentParser()

    @property
    def _recipe_dir(self) -> Path:
        file = sys.modules[type(self).__module__].__file__
        assert file is not None
        return Path(file).parent

    def run(self, context: Any) -> None:
        metadata = json.loads((self._recipe_dir / "metadata.json").read_text())
        self._analysis_dict = {
            "RecipeJsonVersion": "1.3",
            "RecipeName": metadata["module_name"],
            "DisplayName": metadata["display_name"],
            "Mode": self._parsed_args.mode,
            "InputFiles": self._parsed_args.input,
        }

    def add_output_file(self, name: str, kind: str = "Data") -> str:
        self._output_files[name] = kind
        return str(self._output_dir / name)

    def create_notebook(self, name: str, kind: str = "Notebook") -> None:
        shutil.copy(self._recipe_dir / name, self.add_output_file(name, kind))

    def create_analysis_file(self) -> None:
        path = self._output_dir / f"{self._output_dir.name}.nsys-analysis"
        path.write_text(json.dumps(self._analysis_dict, indent=4))
