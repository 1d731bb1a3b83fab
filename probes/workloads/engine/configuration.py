"""The engine's options as settings, and the shape of its model: what a recording says of a run of it.

Standard library only: the recorder asks, in which there is no torch.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from inspector.configuration import folder
from inspector.configuration.settings import Configuration, Setting, Value, merged, of
from inspector.errors import Usage
from probes.workloads.engine import options
from probes.workloads.engine.options import Options

MODULE = "probes.workloads.engine"
_WEIGHTS = Path(__file__).parent / "weights"
_COMMAND = "command line"
_NAMES: Mapping[str, str] = {
    "max_batch_size": "max_batch_size",
    "max_num_tokens": "max_num_tokens",
    "kv_blocks": "blocks",
    "tokens_per_block": "tokens_per_block",
    "host_blocks": "host_blocks",
    "reuse": "reuse",
    "scheduler_policy": "policy",
    "batching": "batching",
    "speculation": "draft",
    "draft_length": "draft_len",
    "pipeline_parallel": "stages",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Usage(message)


def configuration(arguments: Sequence[str]) -> Configuration:
    """What a run with those arguments is set to as it starts; {} where the engine would not take them."""
    parser = _Parser(add_help=False)
    options.add_arguments(parser)
    try:
        chosen = options.from_args(parser.parse_known_args(list(arguments))[0])
    except Usage:
        return Configuration()
    settings = [_setting(chosen, name, option) for name, option in _NAMES.items()]
    for name, option in (("model", "model"), ("backend", "device")):
        found = _setting(chosen, name, option)
        settings.append(replace(found, value=f"built-in, {found.value}"))
    settings.append(Setting("chunked_context", True, "built-in engine", ""))
    return merged([of(settings), folder.of_folder(_WEIGHTS)])


def _setting(chosen: Options, name: str, option: str) -> Setting:
    value: Value = getattr(chosen, option)
    given = value != options.DEFAULTS[option]
    return Setting(name, value, _COMMAND if given else "built-in engine", options.flag(option) if given else "default")
