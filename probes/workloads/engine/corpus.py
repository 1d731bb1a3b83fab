"""Training rows without end: conversations in the format that the engine uses, tokenised and packed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from .prompts import SYSTEM_PROMPTS, TASKS
from .tokens import ASSISTANT, END, ENTRIES, FIRST_MERGE, USER, Tokenizer

SHARES = {
    "target": {"faq": 0.48, "prose": 0.28, "copy": 0.24},
    "draft": {"faq": 0.89, "prose": 0.01, "copy": 0.10},
}
"""Share of conversations by group. The draft model is made for questions and has seen little else, as a draft model
often is made for the traffic that is expected: it helps there, and less so elsewhere."""
_WITH_SYSTEM_PROMPT = 0.4
_SYSTEM_PROMPT_IN_TOKENS = 0.03
_TURNS = (1, 1, 1, 2, 3)
_ASKED_WEIGHT = 0.1
"""What the user says is hard to foresee and never generated: it counts less than the answers do."""

Conversation = tuple[str, list[tuple[str, str]], bool]
"""Group, (request, answer) turns, and whether the system prompt stands before them."""
Row = tuple[list[int], list[float]]
"""Ids, and how much it counts that each is foreseen."""


def conversations(random: Random, unseen: bool, shares: Mapping[str, float]) -> Iterator[Conversation]:
    """Conversations by `shares` of groups, with requests kept out of training (`unseen`) or with the others."""
    groups, weights = list(shares), list(shares.values())
    while True:
        group = random.choices(groups, weights)[0]
        turns = [TASKS[group](random, unseen) for _ in range(random.choice(_TURNS))]
        yield group, turns, random.random() < _WITH_SYSTEM_PROMPT


def tokenise(tokenizer: Tokenizer, conversation: Conversation) -> Row:
    """Ids of a conversation, and how much it counts that each is foreseen."""
    group, turns, with_system = conversation
    ids = tokenizer.chat([("system", SYSTEM_PROMPTS[group])], answer=False) if with_system else []
    weights = [_ASKED_WEIGHT] * len(ids)
    for request, answer in turns:
        asked = [USER, *tokenizer.encode(request), ASSISTANT]
        answered = [*tokenizer.encode(answer), END]
        ids += asked + answered
        weights += [_ASKED_WEIGHT] * len(asked) + [1.0] * len(answered)
    return ids, weights


def rows(tokenizer: Tokenizer, random: Random, length: int, shares: Mapping[str, float]) -> Iterator[Row]:
    """Rows of `length` ids with their weights; each begins with a conversation, and the last one in it is cut off."""
    source = conversations(random, unseen=False, shares=shares)
    while True:
        ids: list[int] = []
        weights: list[float] = []
        while len(ids) < length:
            more_ids, more_weights = tokenise(tokenizer, next(source))
            ids += more_ids
            weights += more_weights
        yield ids[:length], weights[:length]


def drill(random: Random, length: int, longest: int) -> Row:
    """A row of random words, each group of 2 to `longest` of them said over and over.

    Only who looks back can foresee it. From conversations alone a model of this size learns to copy very late.
    """
    ids: list[int] = []
    weights: list[float] = []
    while len(ids) < length:
        group = [random.randrange(FIRST_MERGE, ENTRIES) for _ in range(random.randint(2, longest))]
        times = max(2, 20 // len(group))
        ids += group * times
        weights += [0.0] * len(group) + [1.0] * (len(group) * (times - 1))
    return ids[:length], weights[:length]


def texts(random: Random, characters: int) -> Iterator[str]:
    """About `characters` of the same text, for the tokenizer to learn from."""
    for group, turns, _ in conversations(random, unseen=False, shares=SHARES["target"]):
        for turn in turns:
            if random.random() < _SYSTEM_PROMPT_IN_TOKENS:
                yield SYSTEM_PROMPTS[group]
            yield from turn
            characters -= sum(map(len, turn))
        if characters < 0:
            return
