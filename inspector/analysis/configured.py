"""The configuration as it is shown and printed: settings in groups, what follows from them, what records say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from inspector import units
from inspector.configuration.settings import BY_NAME, Configuration, Setting, Value, shown
from inspector.configuration.sizes import Derived, kv_bytes_per_token, page_bytes, pass_bytes, weight_bytes

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

MODELLED = "Modelled"
"""Heading of what follows from the settings."""
WITH_DRAFTS = "perhaps with the KV of a draft model"
"""Why pages may be larger than the model makes them."""
# What one asks for first: where it is not known, that is said.
_ASKED = (
    "model",
    "layers",
    "heads",
    "kv_heads",
    "head_dim",
    "dtype",
    "quantization",
    "kv_dtype",
    "tensor_parallel",
    "pipeline_parallel",
    "expert_parallel",
    "max_batch_size",
    "max_num_tokens",
    "max_seq_len",
    "tokens_per_block",
    "kv_fraction",
    "speculation",
)
_DERIVED: Mapping[str, tuple[str, Callable[[Configuration], Derived]]] = {
    "kv_bytes_per_token": ("KV of a token", kv_bytes_per_token),
    "page_bytes": ("KV of a page", page_bytes),
    "weight_bytes": ("Weights", weight_bytes),
    "pass_bytes": ("Weights of a pass", pass_bytes),
}


@dataclass(frozen=True)
class Line:
    """One thing that is known. `value` is for people, `exact` the value itself (with `unit`); `where` is the file or
    option in short, `origin` in full; `doubt` what weaker sources or the records say otherwise, '' where nothing does.
    """

    name: str
    title: str
    value: str
    exact: Value
    unit: str
    where: str
    origin: str
    meaning: str = ""
    doubt: str = ""


@dataclass(frozen=True)
class Configured:
    """`groups` have lines; `unknown` names settings that one would ask for and nobody says, `notes` tell what could not
    be read or reckoned, and why.
    """

    groups: tuple[tuple[str, tuple[Line, ...]], ...]
    unknown: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def lines(self) -> tuple[tuple[str, Line], ...]:
        """All of them, each with its heading."""
        return tuple((heading, line) for heading, lines in self.groups for line in lines)


def configured(trace: Trace) -> Configured:
    """What is known of how the workload was set; nothing is in it that no file, option or record says."""
    config = trace.info.configuration
    said = contradictions(trace)
    groups: dict[str, list[Line]] = {}
    for each in config:
        groups.setdefault(BY_NAME[each.name].group, []).append(_line(each, said.get(each.name, "")))
    notes = list(config.notes)
    sizes = derived(config)
    for name, found in sizes.items():
        title = _DERIVED[name][0]
        if name == "pass_bytes" and found.value == sizes["weight_bytes"].value:
            continue
        if found.value is not None:
            groups.setdefault(MODELLED, []).append(_derived(name, title, found, said.get(name, "")))
        elif "layers" in config:
            notes.append(f"{title} cannot be modelled: {found.why}")
    return Configured(
        tuple((heading, tuple(lines)) for heading, lines in groups.items()),
        tuple(name for name in _ASKED if name not in config and _applies(name, config)) if len(config) else (),
        tuple(dict.fromkeys(notes)),
    )


def derived(config: Configuration) -> dict[str, Derived]:
    """What follows from the settings, modelled: bytes, or why they are not known. {} where nothing is known at all."""
    return {name: derive(config) for name, (_, derive) in _DERIVED.items()} if len(config) else {}


def where(setting: Setting) -> str:
    """Where a setting stands, short: '--tp_size', 'max_batch_size in options.yaml', 'default'."""
    key, file = setting.key, PurePath(setting.file).name or setting.file
    if key.startswith("-"):
        return key
    return f"{key} in {file}" if key else file


def contradictions(trace: Trace) -> dict[str, str]:
    """What the records of the trace say otherwise than its configuration, by name of the setting."""
    config, iterations, pools = trace.info.configuration, trace["iterations"], trace["pools"]
    found = {}
    for name, values in (
        ("max_batch_size", iterations.get("max_batch_size")),
        ("max_num_tokens", iterations.get("max_num_tokens")),
        ("tokens_per_block", pools["tokens_per_block"]),
        ("kv_blocks", pools["blocks"]),
    ):
        wanted = config.integer(name)
        told = values[values > 0]
        if wanted is None or not len(told) or (told[0] == wanted == told[-1]):
            continue
        if (told == wanted).any():
            # What changed while it ran was once as it was set.
            found[name] = f"recorded: {int(told[-1]):,} in the end" if told[-1] != wanted else ""
        else:
            found[name] = f"recorded: {_few(np.unique(told).tolist())}"
    sizes = pools["block_bytes"]
    said = page_words(config, [int(size) for size in np.unique(sizes[sizes > 0])])
    if said:
        found["page_bytes"] = said
    return {name: text for name, text in found.items() if text}


def page_words(config: Configuration, recorded: list[int]) -> str:
    """How pages of the sizes that were recorded differ from what the model makes; '' where they do not, or where one of
    both is not known. A rank may hold its share of the heads and layers alone.
    """
    whole = page_bytes(config).value
    if whole is None or not recorded:
        return ""
    tensor, stages = config.integer("tensor_parallel") or 1, config.integer("pipeline_parallel") or 1
    shares = {share for share in (1, tensor, stages, tensor * stages) if whole % share == 0}
    other = [size for size in recorded if not any(size * share == whole for share in shares)]
    if not other:
        return ""
    said = f"recorded: {_few(other)} bytes"
    drafts = (config.text("speculation") or "none").lower() != "none" or "draft_model" in config
    return f"{said}, {WITH_DRAFTS}" if drafts and min(other) > whole else said


def _few(values: list[int]) -> str:
    rest = len(values) - 3
    return ", ".join(f"{value:,}" for value in values[:3]) + (f" and {rest:,} more" if rest > 0 else "")


def _line(setting: Setting, recorded: str) -> Line:
    known = BY_NAME[setting.name]
    doubt = "; ".join(part for part in (recorded, setting.over) if part)
    value, place = shown(setting), where(setting)
    return Line(
        setting.name, known.title, value, setting.value, known.unit, place, setting.origin, known.meaning, doubt
    )


def _derived(name: str, title: str, found: Derived, doubt: str) -> Line:
    value = found.value or 0
    short = f"{value:,} bytes" if value < 100_000 else units.size(value)
    meaning = "modelled from the settings, all ranks together"
    return Line(name, title, short, value, "bytes", found.formula, found.formula, meaning, doubt)


def _applies(name: str, config: Configuration) -> bool:
    """Whether one would ask for it: not for experts of a model without any, nor for heads of a latent."""
    if name in ("kv_heads", "head_dim"):
        return "latent_kv" not in config
    if name == "expert_parallel":
        return "experts" in config or "layers" not in config
    return True
