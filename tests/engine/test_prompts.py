from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.workloads.engine import faq, prose, scenes
from probes.workloads.engine.corpus import SHARES, conversations, drill, rows, tokenise
from probes.workloads.engine.facts import FACTS
from probes.workloads.engine.grammar import fill, held_out
from probes.workloads.engine.prompts import SYSTEM_PROMPTS, TASKS, prompts
from probes.workloads.engine.tokens import ASSISTANT, END, FIRST_MERGE, SYSTEM, USER, Tokenizer

TOKENIZER = Tokenizer.load()
SEEDS = st.integers(0, 2**32)


@cache
def _training_turns(count: int) -> list[tuple[str, str, str]]:
    found = islice(conversations(Random("look"), unseen=False, shares=SHARES["target"]), count)
    return [(group, *turn) for group, turns, _ in found for turn in turns]


def _kept_out_questions() -> set[str]:
    found: set[str] = set()
    for form in faq.FORMS:
        for topic in FACTS:
            for other in FACTS if form == "compare" else [topic]:
                if held_out(form, topic, *([other] if form == "compare" else [])):
                    found |= faq.questions(form, topic, other)
    return found


def test_no_validation_question_is_in_the_training_text() -> None:
    kept_out = _kept_out_questions()
    asked = Counter(request for group, request, _ in _training_turns(20_000) if group == "faq")
    assert not kept_out & set(asked)
    # The test would be empty if the wordings were not those that are asked.
    every = {
        wording
        for form in faq.FORMS
        for topic in FACTS
        for other in FACTS
        for wording in faq.questions(form, topic, other)
    }
    assert set(asked) <= every
    assert len(kept_out) > 200
    assert len(asked) > 1_500


@pytest.mark.parametrize("group", TASKS)
def test_no_unseen_prompt_is_in_the_training_text(group: str) -> None:
    trained = {request for found, request, _ in _training_turns(20_000) if found == group}
    asked = {prompt.user for prompt in islice(prompts(group, 1, unseen=True), 1_000)}
    assert len(asked) > 200
    assert not trained & asked


def test_every_topic_is_asked_in_most_forms() -> None:
    for topic in FACTS:
        assert sum(not held_out(form, topic) for form in faq.FORMS) >= 5


@given(SEEDS, st.booleans())
def test_a_story_is_about_what_was_asked(seed: int, unseen: bool) -> None:
    request, told = prose.story(Random(seed), unseen)
    role = next(role for role in scenes.ROLES.split("|") if role in request)
    thing = next(thing for thing in scenes.THINGS.split("|") if thing in request)
    place = next(place for place in scenes.PLACES.split("|") if place in request)
    assert held_out(role, thing) is unseen
    assert role in told
    assert place in told.lower()
    heroes = [name for name in f"{scenes.WOMEN}|{scenes.MEN}".split("|") if name in told]
    assert 1 <= len(heroes) <= 3


@given(st.sampled_from(sorted(TASKS)), SEEDS, st.booleans())
def test_texts_have_no_template_left_and_read_as_sentences(group: str, seed: int, unseen: bool) -> None:
    for text in TASKS[group](Random(seed), unseen):
        assert not set(text) & set("{}|")
        assert "  " not in text
        assert text.isascii()
        assert not re.search(r"\b[Aa] (?:old|ugly|engine|island|all-reduce|idle|attention)\b", text)
    if group != "copy":
        assert re.search(r"[.?]$", text)
        assert not re.search(r"\. [a-z]", text)


@given(SEEDS)
def test_what_is_to_be_copied_stands_in_the_request(seed: int) -> None:
    request, answer = TASKS["copy"](Random(seed), True)
    if request.startswith(("Number these", "Make a numbered", "Put numbers")):
        lines = request.split("\n")[1:]
        assert answer.split("\n") == [f"{at}. {line}" for at, line in enumerate(lines, 1)]
    else:
        assert request.count(answer) >= 1
    if quoted := re.match(r'[^"]* with "([^"]+)"?: ', request):
        assert answer.startswith(quoted.group(1))


@pytest.mark.parametrize("group", TASKS)
def test_prompts_are_the_same_for_a_seed_and_different_for_another(group: str) -> None:
    first, again, other = (list(islice(prompts(group, seed), 30)) for seed in (5, 5, 6))
    assert first == again
    assert first != other
    assert {prompt.group for prompt in first} == {group}
    assert first[0].messages == [("system", SYSTEM_PROMPTS[group]), ("user", first[0].user)]


def test_system_prompts_fill_several_blocks_and_share_the_first_ones() -> None:
    encoded = [TOKENIZER.chat([("system", text)], answer=False) for text in SYSTEM_PROMPTS.values()]
    assert all(len(ids) >= 64 for ids in encoded)
    shared = next(at for at, ids in enumerate(zip(*encoded, strict=False)) if len(set(ids)) > 1)
    assert shared >= 32


@given(SEEDS)
def test_tokens_of_a_conversation_are_those_of_a_chat(seed: int) -> None:
    conversation = next(conversations(Random(seed), unseen=False, shares=SHARES["target"]))
    group, turns, with_system = conversation
    messages = [("system", SYSTEM_PROMPTS[group])] if with_system else []
    for request, answer in turns:
        messages += [("user", request), ("assistant", answer)]
    ids, weights = tokenise(TOKENIZER, conversation)
    assert ids == TOKENIZER.chat(messages, answer=False)
    # What counts in full is exactly what the engine has to generate: from the assistant's turn to its end.
    answering = False
    for token, weight in zip(ids, weights, strict=True):
        assert (weight == 1.0) is answering
        answering = token == ASSISTANT or (answering and token != END)


@pytest.mark.parametrize("which", SHARES)
def test_rows_are_full_and_begin_with_a_conversation(which: str) -> None:
    shares = SHARES[which]
    groups = Counter(group for group, *_ in islice(conversations(Random(1), unseen=False, shares=shares), 3_000))
    for group, share in shares.items():
        assert abs(groups[group] / 3_000 - share) < 0.04
    for ids, weights in islice(rows(TOKENIZER, Random(2), 200, shares), 50):
        assert len(ids) == len(weights) == 200
        assert ids[0] in (SYSTEM, USER)


@given(SEEDS, st.integers(2, 60))
def test_what_counts_in_a_drill_was_said_before(seed: int, longest: int) -> None:
    ids, weights = drill(Random(seed), 129, longest)
    assert len(ids) == len(weights) == 129
    assert set(weights) <= {0.0, 1.0}
    assert weights.count(1.0) >= 30
    for at, (token, weight) in enumerate(zip(ids, weights, strict=True)):
        assert token >= FIRST_MERGE
        if weight:
            assert any(ids[at - back] == token for back in range(2, longest + 1) if back <= at)


def test_templates_expand_from_the_inside() -> None:
    found = {fill("{a|b {c|d}} {x}", Random(seed), {"x": "{y|z}"}) for seed in range(200)}
    assert found == {f"{left} {right}" for left in ("a", "b c", "b d") for right in "yz"}
    with pytest.raises(KeyError):
        fill("{nobody}", Random(1))
