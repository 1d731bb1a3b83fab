"""What a folder or a file says: of a model, of an engine, of options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from inspector.configuration import engine, huggingface, options
from inspector.configuration.documents import MOST_JSON, read_json, read_yaml
from inspector.configuration.settings import Configuration, merged, printable
from inspector.errors import InspectorError, Unreadable

SUFFIXES = (".yaml", ".yml")
"""Of files of options; for JSON what it holds decides."""
Reading = Callable[[Path], Configuration]
_QUANTIZATION, _INDEX = "hf_quant_config.json", "model.safetensors.index.json"
_OPTIONS = (
    "extra_llm_api_options.yaml",
    "extra_llm_api_options.yml",
    "extra-llm-api-config.yml",
    "extra-llm-api-config.yaml",
    "extra-llm-api-options.yaml",
    "llm_api_options.yaml",
)


def of_folder(folder: Path) -> Configuration:
    """All that config.json and its companions say; {} where there is none, with notes where one cannot be read."""
    return merged(_guarded(folder / name, read) for name, read in _MODEL.items())


def of_options(path: Path) -> Configuration:
    """What a file of options says; with a note where it cannot be read."""
    return _guarded(path, _read_options, wanted=True)


def is_configuration(path: Path) -> bool:
    """Whether `path` may be a file of configuration, or a folder of a model or an engine: by its name, and of JSON by
    what it holds.
    """
    if path.is_dir():
        return any(os.path.isfile(path / name) for name in (*_MODEL, *_OPTIONS))
    if path.name in _MODEL or path.suffix.lower() in SUFFIXES:
        return True
    return path.suffix.lower() == ".json" and path.stat().st_size <= MOST_JSON and len(of_file(path)) > 0


def of_paths(paths: Iterable[Path]) -> Configuration:
    """What files and folders say together: options over the model, of equals the first. Raises Unreadable, Missing."""
    parts = [part for path in paths for part in _ranked(path)]
    return merged(found for _, found in sorted(parts, key=lambda part: part[0]))


def of_file(path: Path) -> Configuration:
    """What one file says; {} for JSON of another kind. Raises Unreadable, Missing."""
    if path.suffix.lower() in SUFFIXES:
        return _read_options(path)
    if path.name in _MODEL:
        return _MODEL[path.name](path)
    tree = read_json(path)
    found = of_config(tree, str(path))
    return found if len(found) or not options.is_options(tree) else options.read_options(tree, str(path))


def _ranked(path: Path) -> list[tuple[int, Configuration]]:
    """The parts of what is at a path, each with its rank: 0 of options, then as in _MODEL. Raises Unreadable."""
    if not path.is_dir():
        rank = list(_MODEL).index(path.name) + 1 if path.name in _MODEL else 0
        parts = [(rank, of_file(path))]
    else:
        parts = [(0, _guarded(path / name, _read_options)) for name in _OPTIONS]
        parts += [(rank, _guarded(path / name, read)) for rank, (name, read) in enumerate(_MODEL.items(), 1)]
    if not any(len(found) for _, found in parts):
        why = next((note for _, found in parts for note in found.notes), "it holds no setting that this program knows")
        do = "choose config.json, a file of options, or the folder of an engine or a model"
        raise Unreadable(f"{path} tells no configuration", why, do)
    return parts


def of_config(tree: dict[str, Any], file: str) -> Configuration:
    """A config.json of either kind; {} with nothing of what we know."""
    if engine.is_engine(tree):
        return engine.read_engine(tree, file)
    return huggingface.read_config(tree, file) if huggingface.is_config(tree) else Configuration()


def _read_config(path: Path) -> Configuration:
    return of_config(read_json(path), str(path))


def _read_quantization(path: Path) -> Configuration:
    return huggingface.read_quantization(read_json(path), str(path))


def _read_index(path: Path) -> Configuration:
    return huggingface.read_index(read_json(path), str(path))


def _read_options(path: Path) -> Configuration:
    return options.read_options(read_yaml(path), str(path))


# The strongest first: what quantises a model says more of it than the model it was made from.
_MODEL: dict[str, Reading] = {
    _QUANTIZATION: _read_quantization,
    "config.json": _read_config,
    _INDEX: _read_index,
}


def _guarded(path: Path, read: Reading, wanted: bool = False) -> Configuration:
    if not wanted and not os.path.isfile(path):
        return Configuration()
    try:
        return read(path)
    except InspectorError as error:
        return Configuration(notes=(printable(str(error)),))
