"""What lies in a folder: of a model, of an engine, or beside a trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspector.configuration import engine, huggingface, options
from inspector.configuration.documents import read_json, read_yaml
from inspector.configuration.settings import Configuration, merged, printable
from inspector.errors import InspectorError

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


def beside(trace: Path) -> Configuration:
    """What lies beside a trace, or in it where it is a folder: options over the model. Nothing says that it belongs."""
    found = []
    for folder in [trace, trace.parent] if trace.is_dir() else [trace.parent]:
        found += [_guarded(folder / name, _read_options) for name in _OPTIONS]
        found.append(of_folder(folder))
    return merged(found)


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
    if not wanted and not path.is_file():
        return Configuration()
    try:
        return read(path)
    except InspectorError as error:
        return Configuration(notes=(printable(str(error)),))
