"""What is known of a workload before it runs: from its command line, and from the files that it names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from inspector.configuration import documents, folder, options
from inspector.configuration.settings import Configuration, merged
from inspector.configuration.taking import Taking
from inspector.errors import InspectorError
from probes.recording import Recording
from probes.workloads import command_lines
from probes.workloads.command_lines import Program
from probes.workloads.engine import configuration as built_in

_FILES = ("--extra_llm_api_options", "--config")
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "backend": ("--backend",),
    "tensor_parallel": ("--tp_size", "--tensor_parallel_size", "--tp"),
    "pipeline_parallel": ("--pp_size", "--pipeline_parallel_size", "--pp"),
    "expert_parallel": ("--ep_size", "--moe_expert_parallel_size", "--ep"),
    "context_parallel": ("--cp_size", "--context_parallel_size"),
    "max_batch_size": ("--max_batch_size",),
    "max_num_tokens": ("--max_num_tokens",),
    "max_seq_len": ("--max_seq_len",),
    "max_beam_width": ("--max_beam_width", "--beam_width"),
    "kv_fraction": (
        "--kv_cache_free_gpu_memory_fraction",
        "--free_gpu_memory_fraction",
        "--kv_cache_free_gpu_mem_fraction",
    ),
    "kv_dtype": ("--kv_cache_dtype",),
    "scheduler_policy": ("--scheduler_policy",),
}
_FLAGS = ("--enable_chunked_prefill", "--enable_chunked_context")
# These take no value, so that what stands behind them is a word of its own.
_BARE = (
    *_FLAGS,
    "--trust_remote_code",
    "--fail_fast_on_attention_window_too_large",
    "--streaming",
    "--help",
)
_MODELS = ("--model", "-m")
_FOLDERS = ("--engine_dir", "--model_path")
_COMMAND = "command line"
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_REVISION = re.compile(r"[\w.-]+")
_MOST_REVISION = 200


def of_command(words: Sequence[str], environment: Mapping[str, str], place: Path) -> Configuration:
    """What a command line says, run in the folder `place`; {} for one that is neither TensorRT-LLM's nor our engine's.

    Of several sources the strongest comes first: --set, the file of options, the other options, the engine, the model.
    """
    for at, (word, module) in enumerate(pairwise(words)):
        if word == "-m" and module == built_in.MODULE:
            return built_in.configuration(words[at + 2 :])
    found = command_lines.program(words)
    if found is None:
        return Configuration()
    arguments = words[found.at + 1 : found.end]
    parts = [_set(arguments)]
    file = command_lines.option(arguments, _FILES)
    if file is not None:
        parts.append(folder.of_options(place / file[1]))
    model = _model(found, arguments)
    said = merged([*parts, _said(arguments, model)])
    folders = [command_lines.option(arguments, (name,)) for name in _FOLDERS]
    named = [place / path[1] for path in folders if path is not None]
    # A file of options may name another model than the command line.
    model = said.text("model") or model
    if model:
        named.append(_folder_of(model, arguments, environment, place))
    return merged([said, *(folder.of_folder(each) for each in named)])


def of_launch(given: Sequence[str], run: Sequence[str], environment: Mapping[str, str]) -> Configuration:
    """Of a command as it was `given`, and as it is `run`: with options of ours, which fill only what was left open."""
    try:
        place = Path.cwd()
    except FileNotFoundError:
        # It was taken away; what is named from there is not found.
        place = Path("/")
    asked = of_command(given, environment, place)
    added = of_command(run, environment, place) if list(given) != list(run) else Configuration()
    return Configuration({**added.settings, **asked.settings}, asked.notes)


def tell(recording: Recording, found: Configuration) -> None:
    """Say it in the header, from its next writing on; what could not be read becomes notes."""
    recording.header = msgspec.structs.replace(recording.header, configuration=list(found))
    for note in found.notes:
        recording.quality.add("absent", note)


def _said(arguments: Sequence[str], model: str) -> Configuration:
    taking = Taking(_COMMAND)
    if model:
        taking.put("model", model, "MODEL")
    for name, spellings in _OPTIONS.items():
        found = command_lines.option(arguments, spellings)
        if found is not None:
            taking.put(name, found[1], arguments[found[0]].split("=", 1)[0])
    for flag in _FLAGS:
        if flag in arguments:
            taking.put("chunked_context", True, flag)
    return taking.done()


def _set(arguments: Sequence[str]) -> Configuration:
    """Options by --set PATH=VALUE, which win over any file. Raises nothing: what is no YAML stays unknown."""
    values = [after for word, after in pairwise(arguments) if word == "--set"]
    values += [word.split("=", 1)[1] for word in arguments if word.startswith("--set=")]
    tree: dict[str, Any] = {}
    for each in values:
        path, given, text = each.partition("=")
        try:
            value = documents.parse_yaml(text[: documents.MOST_YAML], "--set") if given else None
        except InspectorError:
            value = text
        *groups, key = path.split(".")
        within = tree
        for name in groups[:8]:
            inner = within.setdefault(name, {})
            if not isinstance(inner, dict):
                break
            within = inner
        else:
            within[key] = value
    return options.read_options(tree, _COMMAND, "--set ") if tree else Configuration()


def _model(program: Program, arguments: Sequence[str]) -> str:
    """The model by name or path, '' where the command line does not say it."""
    named = command_lines.option(arguments, _MODELS)
    if named is not None:
        return named[1]
    if program.name != "serve":
        return ""
    words = list(arguments[1:] if arguments[:1] == ["serve"] else arguments)
    place = 0
    while place < len(words):
        word = words[place]
        if not word.startswith("-"):
            return word
        place += 1 if "=" in word or word in _BARE else 2
    return ""


def _folder_of(model: str, arguments: Sequence[str], environment: Mapping[str, str], place: Path) -> Path:
    """Where config.json of a model lies: in its own folder, or in the cache of what was loaded from the hub."""
    given = place / model
    if not _REPOSITORY.fullmatch(model) or given.is_dir():
        return given
    home = environment.get("HOME") or os.path.expanduser("~")
    cache = Path(environment.get("XDG_CACHE_HOME") or Path(home, ".cache"))
    hub = Path(environment.get("HF_HOME") or cache / "huggingface") / "hub"
    hub = Path(environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE") or hub)
    kept = hub / f"models--{model.replace('/', '--')}"
    asked = command_lines.option(arguments, ("--revision",))
    revision = asked[1] if asked is not None else "main"
    if not _REVISION.fullmatch(revision):
        return given
    try:
        named = documents.read_bytes(kept / "refs" / revision, _MOST_REVISION).decode("ascii", "replace").strip()
    except InspectorError:
        named = revision
    return kept / "snapshots" / named if _REVISION.fullmatch(named) else given
