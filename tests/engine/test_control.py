"""Changes while it runs: good lines take effect whole, bad ones not at all, and none ends the reading."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.errors import Usage
from probes.workloads.engine.control import LONGEST_LINE, Change, follow, parse


def _followed(text: bytes) -> tuple[list[Change], list[str]]:
    changes: list[Change] = []
    complaints: list[str] = []
    follow(io.BytesIO(text), changes.append, complaints.append)
    return changes, complaints


def test_lines_take_effect_in_order() -> None:
    lines = b'{"set": {"max_batch_size": 8, "draft": "none"}}\n\n{"pause": true}\n{"pause": false, "stop": true}'
    assert _followed(lines) == (
        [Change({"max_batch_size": 8, "draft": "none"}), Change(pause=True), Change(pause=False, stop=True)],
        [],
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "no JSON"),
        ("[]", "asks for nothing"),
        ("{}", "asks for nothing"),
        ('{"halt": 1}', "'halt'"),
        ('{"set": 4}', "name options and values"),
        ('{"set": {"speed": 4}}', "no option 'speed'"),
        ('{"set": {"stages": 2}}', "cannot change while the engine runs. These can: "),
        ('{"set": {"rate": -1}}', "--rate -1: it must be a number of 0 to 1000"),
        ('{"set": {"rate": 1e-11}}', "--rate 1e-11: it must be 0 or a number of 1e-06 to 1000"),
        ('{"set": {"rate": 1, "draft_len": 0}}', "--draft-len 0"),
        ('{"pause": 1}', "true or false"),
        ('{"stop": null}', "true or false"),
    ],
)
def test_a_bad_line_is_complained_of_and_the_next_one_heard(line: str, says: str) -> None:
    with pytest.raises(Usage):
        parse(line.encode())
    changes, complaints = _followed(line.encode() + b'\n{"pause": true}\n')
    assert changes == [Change(pause=True)]
    assert len(complaints) == 1
    assert says in complaints[0]
    assert "\n" not in complaints[0]


def test_a_line_without_end_is_left_out() -> None:
    endless = b'{"set": "' + b"x" * (3 * LONGEST_LINE)
    changes, complaints = _followed(endless + b'"}\n{"stop": true}\n')
    assert changes == [Change(stop=True)]
    assert complaints == [f"a line of more than {LONGEST_LINE} bytes is left out"]
    assert _followed(endless)[0] == []


@given(st.lists(st.binary(max_size=60)), st.dictionaries(st.sampled_from(("rate", "blocks", "policy")), st.integers()))
def test_no_text_ends_the_reading(noise: list[bytes], settings: dict[str, Any]) -> None:
    text = b"\n".join([*noise, json.dumps({"set": settings}).encode(), b'{"stop": true}'])
    changes, _ = _followed(text)
    assert changes[-1] == Change(stop=True)
