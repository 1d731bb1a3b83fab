"""THE list of settings, and what is known of them: a value each, with the file and the key that say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Value = bool | int | float | str
Group = Literal["Model", "Numbers", "Parallel", "Limits", "KV cache", "Scheduling", "Speculation"]
MOST_TEXT = 300
"""Characters of a text; what is longer is cut."""
_MOST = 1 << 53
_MOST_STRANGE = 20


@dataclass(frozen=True)
class Field:
    """A setting: what it is called, of which kind its value is, and from where to where a number may reach."""

    name: str
    group: Group
    title: str
    kind: type[bool] | type[int] | type[float] | type[str]
    meaning: str
    unit: str = ""
    low: float = 0
    high: float = _MOST


def _count(name: str, group: Group, title: str, meaning: str, unit: str = "") -> Field:
    return Field(name, group, title, int, meaning, unit, 1)


FIELDS: tuple[Field, ...] = (
    Field("model", "Model", "Model", str, "name or path of the model as it was given"),
    Field("family", "Model", "Family", str, "the kind of architecture"),
    _count("layers", "Model", "Layers", "decoder layers"),
    _count("hidden_size", "Model", "Hidden size", "numbers that stand for a token between layers"),
    _count("intermediate_size", "Model", "MLP size", "numbers inside of the feed-forward part of a layer"),
    _count("heads", "Model", "Heads", "attention heads for queries"),
    _count("kv_heads", "Model", "KV heads", "attention heads for keys and values"),
    _count("head_dim", "Model", "Head size", "numbers of a head"),
    _count("vocabulary", "Model", "Vocabulary", "different tokens", "tokens"),
    _count("positions", "Model", "Context", "longest context that the model is made for", "tokens"),
    _count("sliding_window", "Model", "Window", "tokens back to which some or all layers attend", "tokens"),
    _count("experts", "Model", "Experts", "routed experts of a layer"),
    _count("experts_per_token", "Model", "Experts per token", "routed experts that a token goes through"),
    _count("expert_size", "Model", "Expert size", "numbers inside of one expert"),
    Field("shared_experts", "Model", "Shared experts", int, "experts that every token goes through"),
    Field("shared_expert_size", "Model", "Shared size", int, "numbers inside of the shared expert, where it differs"),
    Field("dense_layers", "Model", "Dense layers", int, "layers at the beginning that have no experts"),
    Field("latent_kv", "Model", "Latent KV", int, "numbers that stand for keys and values of a token together (MLA)"),
    Field("latent_q", "Model", "Latent queries", int, "numbers that stand for the queries of a token together (MLA)"),
    Field("rope_dim", "Model", "Rotary part", int, "numbers of a head that carry the position (MLA)"),
    Field("nope_dim", "Model", "Other part", int, "numbers of a head that do not carry the position (MLA)"),
    Field("value_dim", "Model", "Value size", int, "numbers of a head for values (MLA)"),
    Field("tied", "Model", "Tied embedding", bool, "whether input and output share one embedding"),
    _count("checkpoint_bytes", "Model", "Checkpoint", "the weights as they lie on the disk", "bytes"),
    Field("dtype", "Numbers", "Number format", str, "of weights and activations that are not quantised"),
    Field("quantization", "Numbers", "Quantisation", str, "of the weights"),
    _count("quantization_group", "Numbers", "Group", "weights that share a scale"),
    Field("kv_dtype", "Numbers", "KV format", str, "number format of the KV cache"),
    _count("tensor_parallel", "Parallel", "Tensor parallel", "ranks that share each layer"),
    _count("pipeline_parallel", "Parallel", "Pipeline parallel", "stages one behind the other"),
    _count("expert_parallel", "Parallel", "Expert parallel", "ranks that share the experts as a whole"),
    _count("context_parallel", "Parallel", "Context parallel", "ranks that share each sequence"),
    Field("attention_dp", "Parallel", "Attention by rank", bool, "each rank has requests and a KV cache of its own"),
    _count("max_batch_size", "Limits", "Batch", "most requests in one iteration", "requests"),
    _count("max_num_tokens", "Limits", "Token budget", "most tokens in one iteration", "tokens"),
    _count("max_seq_len", "Limits", "Sequence", "longest prompt and output together", "tokens"),
    _count("max_input_len", "Limits", "Prompt", "longest prompt", "tokens"),
    _count("max_beam_width", "Limits", "Beams", "beams of a request"),
    Field("kv_fraction", "KV cache", "Memory share", float, "of the free device memory for the KV cache", "", 0, 1),
    _count("kv_tokens", "KV cache", "Tokens", "most tokens that the KV cache holds", "tokens"),
    _count("kv_blocks", "KV cache", "Pages", "pages of the KV cache"),
    _count("tokens_per_block", "KV cache", "Page", "tokens of a page", "tokens"),
    Field("reuse", "KV cache", "Reuse", bool, "pages of equal prefixes are used again"),
    Field("host_cache", "KV cache", "Host memory", int, "host memory for pages that leave the device", "bytes"),
    Field("host_blocks", "KV cache", "Host pages", int, "pages in host memory"),
    Field("backend", "Scheduling", "Backend", str, "which executor runs the model"),
    Field("batching", "Scheduling", "Batching", str, "how requests come into batches"),
    Field("chunked_context", "Scheduling", "Chunked context", bool, "long prompts come in chunks"),
    Field("scheduler_policy", "Scheduling", "Policy", str, "when a request is let into the batch"),
    Field("overlap", "Scheduling", "Overlap", bool, "the next iteration is prepared while one runs"),
    Field("speculation", "Speculation", "Drafts", str, "who drafts tokens"),
    Field("draft_length", "Speculation", "Draft length", int, "tokens drafted in a step", "tokens"),
    Field("draft_model", "Speculation", "Draft model", str, "model that drafts"),
)
BY_NAME: Mapping[str, Field] = {each.name: each for each in FIELDS}


@dataclass(frozen=True)
class Setting:
    """`value` of the setting `name`, as `key` in `file` has it. `over` is what weaker sources say otherwise."""

    name: str
    value: Value
    file: str
    key: str
    over: str = ""

    @property
    def origin(self) -> str:
        """'max_batch_size in options.yaml; over 8 by --max_batch_size'."""
        place = f"{self.key} in {self.file}" if self.key else self.file
        return f"{place}; {self.over}" if self.over else place


@dataclass(frozen=True)
class Configuration:
    """What is known, by name of the setting; `notes` say what could not be read, and why."""

    settings: Mapping[str, Setting] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Setting]:
        """In the order of FIELDS."""
        return (self.settings[each.name] for each in FIELDS if each.name in self.settings)

    def __len__(self) -> int:
        return len(self.settings)

    def __contains__(self, name: str) -> bool:
        return name in self.settings

    def integer(self, name: str) -> int | None:
        """A count or size; None when it is not known. Raises KeyError for a name that is no count."""
        value = self._value(name, int)
        return value if isinstance(value, int) else None

    def number(self, name: str) -> float | None:
        """A share; None when it is not known. Raises KeyError for a name that is none."""
        value = self._value(name, float)
        return value if isinstance(value, float) else None

    def text(self, name: str) -> str | None:
        """A word; None when it is not known. Raises KeyError for a name that is none."""
        value = self._value(name, str)
        return value if isinstance(value, str) else None

    def flag(self, name: str) -> bool | None:
        """Yes or no; None when it is not known. Raises KeyError for a name that is none."""
        value = self._value(name, bool)
        return value if isinstance(value, bool) else None

    def _value(self, name: str, kind: type) -> Value | None:
        if BY_NAME[name].kind is not kind:
            raise KeyError(name)
        found = self.settings.get(name)
        return None if found is None else found.value


def of(settings: Iterable[Setting]) -> Configuration:
    """Settings from elsewhere, checked: those that no FIELD allows are left out with a note."""
    found: dict[str, Setting] = {}
    strange: list[str] = []
    for each in settings:
        known = BY_NAME.get(each.name)
        value = None if known is None else fitting(known, each.value)
        if value is None:
            strange.append(each.name)
        else:
            found[each.name] = replace(
                each,
                value=value,
                file=printable(each.file),
                key=printable(each.key),
                over=printable(each.over),
            )
    return Configuration(found, _of_strange(strange))


def _of_strange(names: list[str]) -> tuple[str, ...]:
    """A note of each, of very many only of the first."""
    first = tuple(dict.fromkeys(printable(name) for name in names[:_MOST_STRANGE]))
    notes = tuple(f"a setting {name!r} that this program does not know, or not with that value" for name in first)
    more = len(names) - _MOST_STRANGE
    return (*notes, f"{more:,} more settings that this program does not know") if more > 0 else notes


def merged(parts: Iterable[Configuration]) -> Configuration:
    """The strongest first: what one does not say is taken from the next; what weaker ones say otherwise is kept."""
    found: dict[str, Setting] = {}
    notes: list[str] = []
    for part in parts:
        notes += part.notes
        for name, each in part.settings.items():
            known = found.get(name)
            if known is None:
                found[name] = each
            elif known.value != each.value:
                weaker = f"over {shown(each)} by {each.key or each.file}"
                over = f"{known.over}, {weaker}" if known.over else weaker
                found[name] = replace(known, over=over[:MOST_TEXT])
    return Configuration(found, tuple(dict.fromkeys(notes)))


def fitting(known: Field, value: object) -> Value | None:
    """`value` as the field wants it; None where it is of another kind or out of its range."""
    if known.kind is bool:
        return value if isinstance(value, bool) else None
    if known.kind is str:
        return (printable(value) or None) if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not known.low <= value <= known.high:
        return None
    if known.kind is float:
        return float(value)
    return int(value) if value == int(value) else None


def printable(text: str) -> str:
    """`text` in one line without controls, and not longer than MOST_TEXT."""
    cut = text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in cut)


def shown(setting: Setting) -> str:
    """Its value for people, exact, with its unit: '4,096 tokens', 'yes', 'bfloat16'."""
    value = setting.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    unit = BY_NAME[setting.name].unit
    text = f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else value
    return f"{text} {unit}".rstrip()
