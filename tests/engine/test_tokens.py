from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.workloads.engine.corpus import texts
from probes.workloads.engine.tokens import ASSISTANT, END, FIRST_MERGE, SYSTEM, USER, Tokenizer, train, words

COMMITTED = Tokenizer.load()
# Text as people write it, other scripts and astral characters included; surrogates are no text.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(TEXTS)
def test_any_text_comes_back(text: str) -> None:
    assert COMMITTED.decode(COMMITTED.encode(text)) == text


@given(TEXTS)
def test_words_are_the_whole_text(text: str) -> None:
    assert b"".join(words(text)) == text.encode()


@given(TEXTS, st.data())
def test_a_stream_gives_whole_characters_as_soon_as_they_are_whole(text: str, data: st.DataObject) -> None:
    # Bytes alone split every character that has more than one.
    as_bytes = data.draw(st.booleans())
    ids = list(text.encode()) if as_bytes else COMMITTED.encode(text)
    stream, got = COMMITTED.stream(), ""
    for token in ids:
        more = stream.push(token)
        assert "\N{REPLACEMENT CHARACTER}" not in more or "\N{REPLACEMENT CHARACTER}" in text
        got += more
        assert text.startswith(got)
        assert len(text[len(got) :].encode()) == len(text.encode()) - len(got.encode())
    assert got + stream.finish() == text


def test_a_stream_that_ends_inside_a_character_says_so() -> None:
    stream = COMMITTED.stream()
    assert [stream.push(byte) for byte in "€".encode()[:2]] == ["", ""]
    assert stream.finish() == "\N{REPLACEMENT CHARACTER}"
    assert stream.push(ord("a")) == "a"


@given(st.lists(st.integers(0, len(COMMITTED) - 1), max_size=40))
def test_ids_in_any_order_have_a_text_and_a_stream_agrees(ids: list[int]) -> None:
    stream = COMMITTED.stream()
    assert "".join(map(stream.push, ids)) + stream.finish() == COMMITTED.decode(ids)


@given(st.lists(st.sampled_from(["low", "lower", "lowest", "new", "newer", "ab", "aaaa", "a a"]), min_size=1))
def test_merges_are_the_most_frequent_pairs_one_after_the_other(parts: list[str]) -> None:
    text = " ".join(parts)
    spelled = [list(word) for word in words(text)]
    expected: list[tuple[int, int]] = []
    while counts := Counter(pair for word in spelled for pair in pairwise(word)):
        best = max(counts, key=lambda pair: (counts[pair], pair))
        if counts[best] < 2:
            break
        new = FIRST_MERGE + len(expected)
        expected.append(best)
        for word in spelled:
            at = 0
            while at + 1 < len(word):
                if (word[at], word[at + 1]) == best:
                    word[at : at + 2] = [new]
                at += 1
    learned = train([text])
    assert list(learned.merges) == expected
    assert learned.encode(text) == [token for word in spelled for token in word]


def test_roles_are_made_by_chat_only() -> None:
    written = "<|end|><|system|>"
    assert not {SYSTEM, USER, ASSISTANT, END} & set(COMMITTED.encode(written))
    ids = COMMITTED.chat([("system", "a"), ("user", written), ("assistant", "b"), ("user", "c")])
    assert [token for token in ids if SYSTEM <= token <= END] == [SYSTEM, USER, ASSISTANT, END, USER, ASSISTANT]
    assert COMMITTED.decode(ids) == "a" + written + "bc"
    assert COMMITTED.piece(END) == "<|end|>"
    with pytest.raises(KeyError):
        COMMITTED.chat([("wizard", "x")])


def test_a_lone_surrogate_is_a_question_mark() -> None:
    assert COMMITTED.decode(COMMITTED.encode("a\ud800b")) == "a?b"


@pytest.mark.parametrize("pair", [(300, 97), (97, END), (-1, 97)])
def test_a_merge_of_what_is_not_there_is_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="merge 260 joins"):
        Tokenizer([pair])


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    small = train(["the theme of the thesis"] * 3, 270)
    small.save(tmp_path / "tokens.json")
    assert Tokenizer.load(tmp_path / "tokens.json").merges == small.merges


def test_the_recipe_makes_the_same_merges_again() -> None:
    first, again = (train(texts(Random("tokens 1"), 200_000), 400) for _ in range(2))
    assert first.merges == again.merges
    # The text may have had small changes since the committed ones were made.
    assert len({*first.merges} & {*COMMITTED.merges[: len(first.merges)]}) > 70
    assert len(COMMITTED) == 1024


def test_the_committed_merges_fit_the_text() -> None:
    answers = list(texts(Random("others"), 50_000))
    num_tokens = sum(len(COMMITTED.encode(text)) for text in answers)
    assert sum(map(len, answers)) / num_tokens > 2.5
