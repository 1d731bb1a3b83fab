"""What clients may ask, and what they are told when they may not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.workloads.engine.asks import Ask, Cut, Refused, parse
from probes.workloads.engine.request import Room
from probes.workloads.engine.tokens import ASSISTANT, END, SYSTEM, USER, Tokenizer

BYTES = Tokenizer([])
LONGEST = 64
ROOM = Room(LONGEST, "the pool is small")


def _parse(chat: bool = False, system: str = "", **fields: Any) -> Ask:
    return parse(json.dumps(fields).encode(), chat=chat, model="tiny", system=system, tokenizer=BYTES, room=ROOM)


def test_a_text_becomes_tokens_and_what_is_not_said_has_a_default() -> None:
    ask = _parse(prompt="ab")
    assert ask == Ask(False, ((97, 98),), 16, 1.0, None, (), False, False, False, False)


def test_the_forms_of_a_prompt() -> None:
    assert _parse(prompt=[1, 2]).prompts == ((1, 2),)
    assert _parse(prompt=["a", [5]]).prompts == ((97,), (5,))


def test_a_chat_speaks_in_roles_and_may_fill_all_the_room() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    said = [{"role": "user", "content": parts}, {"role": "assistant", "content": "c"}]
    ask = _parse(chat=True, messages=said)
    assert ask.prompts == ((USER, 97, 98, ASSISTANT, 99, END, ASSISTANT),)
    assert ask.max_tokens == LONGEST - 7
    assert _parse(chat=True, messages=said, max_tokens=9, max_completion_tokens=5).max_tokens == 5


def test_a_chat_without_a_system_message_gets_the_models_own() -> None:
    user, own = {"role": "user", "content": "a"}, {"role": "system", "content": "c"}
    assert _parse(chat=True, system="b", messages=[user]).prompts == ((SYSTEM, 98, USER, 97, ASSISTANT),)
    assert _parse(chat=True, system="b", messages=[own, user]).prompts == ((SYSTEM, 99, USER, 97, ASSISTANT),)


def test_null_asks_for_the_default_and_what_asks_for_nothing_is_let_pass() -> None:
    usual: dict[str, Any] = {
        "top_p": 1.0,
        "n": 1,
        "presence_penalty": 0.0,
        "logprobs": None,
        "stop": None,
        "seed": None,
        "user": "me",
    }
    assert _parse(prompt="a", temperature=None, **usual) == _parse(prompt="a")


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({}, 400, "prompt must be"),
        ({"prompt": ""}, 400, "must not be empty"),
        ({"prompt": []}, 400, "list of 1 to"),
        ({"prompt": 7}, 400, "prompt must be"),
        ({"prompt": [[1], 2]}, 400, "each prompt"),
        ({"prompt": [260]}, 400, "token id 260"),
        ({"prompt": [True]}, 400, "token id True"),
        ({"prompt": "a", "model": "huge"}, 404, "does not exist"),
        ({"prompt": "a", "n": 2}, 400, "n 2 is not supported"),
        ({"prompt": "a", "top_p": 0.5}, 400, "top_p"),
        ({"prompt": "a", "max_tokens": 0}, 400, "max_tokens must be a whole number"),
        ({"prompt": "a", "max_tokens": 64}, 400, "together can have 64: the pool is small"),
        ({"prompt": "a" * 64}, 400, "has 64 tokens"),
        ({"prompt": "a", "temperature": -1}, 400, "temperature"),
        ({"prompt": "a", "temperature": float("nan")}, 400, "temperature"),
        ({"prompt": "a", "seed": 1.5}, 400, "seed"),
        ({"prompt": "a", "stream": 1}, 400, "stream must be true or false"),
        ({"prompt": "a", "stop": [""]}, 400, "stop must be"),
        ({"prompt": "a", "stop": ["x"] * 17}, 400, "stop must be"),
    ],
)
def test_what_cannot_be_is_refused_with_what_is_wrong(fields: dict[str, Any], status: int, says: str) -> None:
    with pytest.raises(Refused) as refused:
        _parse(**fields)
    assert refused.value.status == status
    assert says in refused.value.message


@pytest.mark.parametrize(
    "messages",
    [None, [], [{"role": "tool", "content": "x"}], ["x"], [{"role": "user", "content": [{"type": "image"}]}]],
)
def test_messages_that_are_none(messages: Any) -> None:
    with pytest.raises(Refused, match=r"messages|role|content"):
        _parse(chat=True, messages=messages)


@given(
    st.binary(max_size=200) | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(repr)
)
def test_no_body_breaks_it(body: bytes | str) -> None:
    raw = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    status = 0
    try:
        parse(raw, chat=False, model="tiny", system="", tokenizer=BYTES, room=ROOM)
    except Refused as refused:
        status = refused.status
    assert status == 400


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(Refused, match="not JSON"):
        parse(b"[" * 200_000, chat=False, model="tiny", system="", tokenizer=BYTES, room=ROOM)


def _first_to_end(text: str, stops: list[str]) -> tuple[str, bool]:
    for end in range(1, len(text) + 1):
        starts = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if starts:
            return text[: min(starts)], True
    return text, False


@given(st.text("ab", max_size=30), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3), st.data())
def test_a_stop_cuts_alike_however_the_text_is_split(text: str, stops: list[str], data: st.DataObject) -> None:
    cut, given_out, at = Cut(tuple(stops)), "", 0
    while at < len(text):
        size = data.draw(st.integers(1, 7))
        given_out += cut.push(text[at : at + size])
        assert text.startswith(given_out)
        at += size
    if cut.reached is None:
        given_out += cut.finish()
    assert (given_out, cut.reached is not None) == _first_to_end(text, stops)
