"""What the built-in engine can be told: one list for its command line, for `inflight demo`, for the window's form.

Standard library only, so that asking for `--help` or for the form costs no start of torch.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast, get_type_hints

from inspector.errors import Usage

GROUPS = ("faq", "prose", "copy")
LONGEST = 1024
"""Most tokens that a mix may ask of a prompt or of an output."""
SLOWEST = 1e-6
"""Least rate of arrivals that is not 0, requests/s: slower ones are due beyond what a clock of 64 bits counts in ns."""
_LENGTHS = frozenset(map(str, range(LONGEST + 1)))

Share = Mapping[str, float]
Value = bool | int | float | str | Share | None


@dataclass(frozen=True)
class About:
    """What an option means. `low` and `high` are inclusive; `live` ones may change while the engine runs."""

    group: str
    text: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    live: bool = False


@dataclass(frozen=True)
class Options:
    """A run of the engine. Raises Usage for what cannot be."""

    model: Annotated[
        str, About("Model", "weights: trained, or random from the seed", choices=("trained", "random"))
    ] = "trained"
    device: Annotated[str, About("Model", "where it computes", choices=("cpu", "cuda"))] = "cpu"
    threads: Annotated[int, About("Model", "torch threads of each process", low=1, high=64)] = 1

    batching: Annotated[
        str,
        About("Batch", "requests join and leave at every iteration, or as one batch", choices=("inflight", "static")),
    ] = "inflight"
    max_batch_size: Annotated[int, About("Batch", "most requests in one iteration", low=1, high=256, live=True)] = 16
    max_num_tokens: Annotated[
        int,
        About("Batch", "most tokens in one iteration; longer prompts come in chunks", low=1, high=8192, live=True),
    ] = 256
    policy: Annotated[
        str,
        About(
            "Batch",
            "admit only what is sure to fit, or admit early and pause requests when pages run out",
            choices=("guaranteed_no_evict", "max_utilization"),
            live=True,
        ),
    ] = "max_utilization"

    blocks: Annotated[int, About("KV cache", "pages on the device", low=2, high=65536, live=True)] = 192
    tokens_per_block: Annotated[int, About("KV cache", "tokens of one page", low=1, high=256)] = 16
    host_blocks: Annotated[
        int, About("KV cache", "pages in host memory, for cached ones that are evicted", low=0, high=65536)
    ] = 64
    reuse: Annotated[bool, About("KV cache", "reuse the pages of equal prefixes")] = True

    draft: Annotated[str, About("Speculation", "who drafts tokens", choices=("none", "model", "ngram"), live=True)] = (
        "model"
    )
    draft_len: Annotated[int, About("Speculation", "tokens drafted per step (K)", low=1, high=16, live=True)] = 4

    stages: Annotated[int, About("Pipeline", "pipeline stages, each a process of its own", low=1, high=4)] = 1
    micro_batches: Annotated[
        int,
        About("Pipeline", "parts in which a batch goes through the stages; 0: as many as stages", low=0, high=64),
    ] = 0

    arrivals: Annotated[str, About("Load", "how requests arrive", choices=("poisson", "burst"))] = "poisson"
    rate: Annotated[
        float, About("Load", "mean rate of arrivals; 0: none", unit="requests/s", low=0, high=1000, live=True)
    ] = 10.0
    mix: Annotated[Share, About("Load", "shares of the kinds of prompts")] = field(
        default_factory=lambda: {"faq": 0.5, "prose": 0.3, "copy": 0.2}
    )
    prompt_tokens: Annotated[
        Share, About("Load", "least prompt lengths, with their shares; 0: as it comes", unit="tokens")
    ] = field(default_factory=lambda: {"0": 0.7, "256": 0.3})
    output_tokens: Annotated[Share, About("Load", "most output lengths, with their shares", unit="tokens")] = field(
        default_factory=lambda: {"24": 0.3, "64": 0.5, "160": 0.2}
    )
    temperature: Annotated[float, About("Load", "of sampling; 0: greedy", low=0, high=10)] = 0.0
    seed: Annotated[int, About("Load", "of arrivals, prompts and sampling", low=0, high=2**31 - 1)] = 1

    seconds: Annotated[float, About("Run", "end after that long; 0: when stopped", unit="s", low=0, high=1e7)] = 0.0
    requests: Annotated[
        int, About("Run", "end when that many have arrived and are done; 0: no end", low=0, high=10**9)
    ] = 0
    port: Annotated[int | None, About("Run", "serve HTTP on 127.0.0.1; 0: on any free port", low=0, high=65535)] = None
    operators: Annotated[
        str,
        About(
            "Run",
            "record operators: not, those of some iterations, or all of them by a native probe",
            choices=("none", "sampled", "native"),
        ),
    ] = "native"

    def __post_init__(self) -> None:
        for name in ABOUT:
            check(name, getattr(self, name))
        if self.stages > 1 and self.device != "cpu":
            raise Usage(f"--stages {self.stages}", "stages are processes that compute on the CPU", "use --device cpu")
        if "0" in self.output_tokens:
            raise Usage("--output-tokens 0", "a request makes 1 token or more")


ABOUT: Mapping[str, About] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Options, include_extras=True).items()
}
LIVE = tuple(name for name, about in ABOUT.items() if about.live)
"""Options that may change while the engine runs."""


def kind(name: str) -> str:
    """Of option `name`: bool, int, float, str or mix."""
    default = DEFAULTS[name]
    return "int" if default is None else "mix" if isinstance(default, Mapping) else type(default).__name__


def flag(name: str) -> str:
    """How option `name` is written on a command line."""
    return "--" + name.replace("_", "-")


def check(name: str, value: object) -> None:
    """Raise Usage when `value` is not one that option `name` can have, or when there is no such option."""
    about = ABOUT.get(name)
    if about is None:
        raise Usage(f"no option {name!r}", "", f"the options are {', '.join(ABOUT)}")
    written = f"{flag(name)} {value}"
    match kind(name):
        case "mix":
            _check_mix(name, value)
        case "bool" if not isinstance(value, bool):
            raise Usage(written, "it must be true or false")
        case "str" if value not in about.choices:
            raise Usage(written, f"it must be one of {', '.join(about.choices)}")
        case "int" | "float" as number if not (value is None and DEFAULTS[name] is None):
            types = (int,) if number == "int" else (int, float)
            if isinstance(value, bool) or not isinstance(value, types) or not about.low <= value <= about.high:
                whole = "whole number" if number == "int" else "number"
                raise Usage(written, f"it must be a {whole} of {about.low:.10g} to {about.high:.10g}")
            if name == "rate" and 0 < value < SLOWEST:
                raise Usage(written, f"it must be 0 or a number of {SLOWEST:.10g} to {about.high:.10g}")


def _check_mix(name: str, value: object) -> None:
    if not isinstance(value, Mapping) or not value:
        raise Usage(f"{flag(name)} {value}", "it must be NAME=SHARE,NAME=SHARE...")
    for key, share in value.items():
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < math.inf:
            raise Usage(f"{flag(name)} {key}={share}", "a share must be a number of 0 or more")
        if name == "mix" and key not in GROUPS:
            raise Usage(f"{flag(name)} {key}", f"the kinds of prompts are {', '.join(GROUPS)}")
        if name != "mix" and str(key) not in _LENGTHS:
            raise Usage(f"{flag(name)} {key}", f"lengths are whole numbers of 0 to {LONGEST} tokens")
    if not sum(value.values()) > 0:
        raise Usage(flag(name), "the shares are all 0")
    if sum(value.values()) > sys.float_info.max:
        raise Usage(flag(name), "the sum of the shares is larger than a number can be")


DEFAULTS: Mapping[str, Value] = {
    field.name: field.default if field.default is not dataclasses.MISSING else cast(Any, field.default_factory)()
    for field in dataclasses.fields(Options)
}


def parse_mix(text: str) -> Share:
    """A mapping from "faq=0.5,prose=0.5"; a name alone has share 1. Raises ArgumentTypeError for another form."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, given, share = (piece.strip() for piece in part.partition("="))
        try:
            shares[name] = float(share) if given else 1.0
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part!r} is not NAME=SHARE") from None
    return shares


def _written(value: Value) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={share!r}" for name, share in value.items())
    return "off" if value is None else str(value)


_PARSERS: Mapping[str, tuple[str, Callable[[str], Value]]] = {
    "int": ("N", int),
    "float": ("X", float),
    "mix": ("MIX", parse_mix),
}


def add_arguments(parser: argparse.ArgumentParser, leave_out: Collection[str] = ()) -> None:
    """Declare every option but those that `leave_out` names, grouped, with units and defaults in the help text."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for name, about in ABOUT.items():
        if name in leave_out:
            continue
        group = groups.get(about.group) or groups.setdefault(about.group, parser.add_argument_group(about.group))
        unit = f" [{about.unit}]" if about.unit else ""
        default = DEFAULTS[name]
        text = f"{about.text}{unit} (default: {_written(default)})"
        if isinstance(default, bool):
            group.add_argument(flag(name), action=argparse.BooleanOptionalAction, default=default, help=text)
        elif about.choices:
            group.add_argument(flag(name), choices=about.choices, default=default, help=text)
        else:
            metavar, parse = _PARSERS[kind(name)]
            group.add_argument(flag(name), type=parse, default=default, metavar=metavar, help=text)


def from_args(args: argparse.Namespace) -> Options:
    """The options that were given; those that the parser left out keep their defaults. Raises Usage."""
    return Options(**{name: getattr(args, name) for name in ABOUT if hasattr(args, name)})


def to_argv(options: Options) -> list[str]:
    """The command line that gives `options`: only what differs from the defaults."""
    argv: list[str] = []
    for name, default in DEFAULTS.items():
        value: Value = getattr(options, name)
        if value == default:
            continue
        if isinstance(value, bool):
            argv.append(flag(name) if value else f"--no-{flag(name)[2:]}")
        else:
            argv += [flag(name), _written(value)]
    return argv


def describe() -> list[dict[str, Any]]:
    """The options as plain data for a form: name, flag, kind, default, group, text, unit, low, high, choices, live.

    `kind` is bool, int, float, str or mix (a mapping of name or length to share); `low` and `high` are None where there
    is no limit.
    """
    return [
        {
            "name": name,
            "flag": flag(name),
            "kind": kind(name),
            "default": DEFAULTS[name],
            **dataclasses.asdict(about),
            "low": about.low if math.isfinite(about.low) else None,
            "high": about.high if math.isfinite(about.high) else None,
        }
        for name, about in ABOUT.items()
    ]
