"""One list of options: command line, form and engine agree on it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.errors import Usage
from probes.workloads.engine import options
from probes.workloads.engine.options import ABOUT, DEFAULTS, Options, check, describe, flag, kind


def _parse(argv: list[str]) -> Options:
    parser = argparse.ArgumentParser(exit_on_error=False)
    options.add_arguments(parser)
    return options.from_args(parser.parse_args(argv))


def _values(name: str) -> st.SearchStrategy[Any]:
    about = ABOUT[name]
    match kind(name):
        case "bool":
            return st.booleans()
        case "str":
            return st.sampled_from(about.choices)
        case "int":
            numbers = st.integers(int(about.low), int(about.high))
            return numbers if DEFAULTS[name] is not None else st.none() | numbers
        case "float":
            floats = st.floats(about.low, about.high)
            return floats.filter(lambda rate: not 0 < rate < options.SLOWEST) if name == "rate" else floats
    keys = st.sampled_from(options.GROUPS) if name == "mix" else st.integers(1, options.LONGEST).map(str)
    return st.dictionaries(keys, st.floats(0, 1e6), min_size=1).filter(lambda shares: sum(shares.values()) > 0)


@given(st.fixed_dictionaries({}, optional={name: _values(name) for name in ABOUT}))
def test_a_command_line_gives_back_the_options_it_was_written_for(chosen: dict[str, Any]) -> None:
    if chosen.get("stages", 1) > 1:
        chosen["device"] = "cpu"
    asked = Options(**chosen)
    argv = options.to_argv(asked)
    assert _parse(argv) == asked
    written = {word for word in argv if word.startswith("--")}
    assert len(written) == sum(getattr(asked, name) != DEFAULTS[name] for name in ABOUT)


def test_defaults_need_no_command_line() -> None:
    assert options.to_argv(Options()) == []
    assert _parse([]) == Options()


@pytest.mark.parametrize("name", [name for name in ABOUT if kind(name) in ("int", "float")])
def test_numbers_outside_their_limits_are_refused_in_one_line(name: str) -> None:
    about = ABOUT[name]
    number: Any = type(about.low)
    for value in (about.low - 1, about.high + 1):
        with pytest.raises(Usage, match=f"^{flag(name)} .*it must be a (whole )?number of ") as refused:
            Options(**{name: number(value)})
        assert "\n" not in str(refused.value)
    for value in (about.low, about.high):
        check(name, value)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("draft", "eagle", "none, model, ngram"),
        ("reuse", 1, "true or false"),
        ("blocks", True, "whole number"),
        ("blocks", 12.0, "whole number"),
        ("rate", float("nan"), "number of 0 to 1000"),
        ("rate", 1e-11, "0 or a number of 1e-06 to 1000"),
        ("rate", 1e-300, "0 or a number of 1e-06 to 1000"),
        ("rate", "fast", "number of 0 to 1000"),
        ("max_batch_size", None, "whole number"),
        ("mix", {}, "NAME=SHARE"),
        ("mix", "faq", "NAME=SHARE"),
        ("mix", {"poems": 1}, "faq, prose, copy"),
        ("mix", {"faq": -1}, "0 or more"),
        ("mix", {"faq": 0, "copy": 0.0}, "all 0"),
        ("mix", {"faq": 1e308, "prose": 1e308}, "larger than a number can be"),
        ("output_tokens", {"8": 1e308, "9": 1e308}, "larger than a number can be"),
        ("prompt_tokens", {"1025": 1}, "0 to 1024"),
        ("output_tokens", {"0": 1, "8": 1}, "1 token or more"),
    ],
)
def test_other_values_are_refused_with_what_would_do(name: str, value: Any, says: str) -> None:
    with pytest.raises(Usage, match=says):
        Options(**{name: value})


def test_no_such_option() -> None:
    with pytest.raises(Usage, match="no option 'speed'"):
        check("speed", 1)


def test_stages_compute_on_the_cpu() -> None:
    with pytest.raises(Usage, match="Use --device cpu"):
        Options(stages=2, device="cuda")


def test_a_mix_that_is_none_is_a_wrong_argument() -> None:
    with pytest.raises(argparse.ArgumentError, match="'faq=much' is not NAME=SHARE"):
        _parse(["--mix", "faq=much"])
    assert _parse(["--mix", "faq, copy=0.5"]).mix == {"faq": 1.0, "copy": 0.5}


def test_a_form_can_be_made_of_the_description() -> None:
    rows = json.loads(json.dumps(describe()))
    assert [row["name"] for row in rows] == list(ABOUT)
    assert Options(**{row["name"]: row["default"] for row in rows}) == Options()
    assert {row["name"] for row in rows if row["live"]} >= {
        "max_batch_size",
        "max_num_tokens",
        "blocks",
        "draft",
        "draft_len",
        "rate",
        "policy",
    }


def test_parts_of_the_list_can_be_left_out() -> None:
    parser = argparse.ArgumentParser()
    options.add_arguments(parser, leave_out=("seconds", "port"))
    parser.add_argument("--seconds", type=int)
    text = parser.format_help()
    assert "--port" not in text
    assert options.from_args(argparse.Namespace(stages=2)) == Options(stages=2)


def test_asking_for_help_starts_no_torch() -> None:
    code = (
        "import argparse, sys; from probes.workloads.engine import options;"
        "parser = argparse.ArgumentParser(); options.add_arguments(parser); parser.format_help(); options.describe();"
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-I", "-c", code], check=False).returncode == 0
