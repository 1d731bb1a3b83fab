"""Training rows without end: conversations in the format that the engine uses, tokenised and packed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from .prompts import SYSTEM_PROMPTS, TASKS
from .tokens import ASSISTANT, END, USER, Tokenizer

SHARES = {"faq": 0.34, "prose": 0.40, "copy": 0.26}
"""Share of conversations by group."""
_WITH_SYSTEM_PROMPT = 0.4
_SYSTEM_PROMPT_IN_TOKENS = 0.03
_TURNS = (1, 1, 1, 2, 3)
_ASKED_WEIGHT = 0.1
"""What the user says is hard to foresee and never generated: it counts less than the answers do."""

Conversation = tuple[str, list[tuple[str, str]], bool]
"""Group, (request, answer) turns, and whether the system prompt stands before them."""


def conversations(random: Random, unseen: bool, groups: Sequence[str] = tuple(SHARES)) -> Iterator[Conversation]:
    """Conversations from `random`, with requests kept out of training (`unseen`) or with the others."""
    weights = [SHARES[group] for group in groups]
    while True:
        group = random.choices(groups, weights)[0]
        turns = [TASKS[group](random, unseen) for _ in range(random.choice(_TURNS))]
        yield group, turns, random.random() < _WITH_SYSTEM_PROMPT


def tokenise(tokenizer: Tokenizer, conversation: Conversation) -> tuple[list[int], list[float]]:
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


def rows(tokenizer: Tokenizer, random: Random, length: int) -> Iterator[tuple[list[int], list[float]]]:
    """Rows of `length` ids with their weights; each begins with a conversation, and the last one in it is cut off."""
    source = conversations(random, unseen=False)
    while True:
        ids: list[int] = []
        weights: list[float] = []
        while len(ids) < length:
            more_ids, more_weights = tokenise(tokenizer, next(source))
            ids += more_ids
            weights += more_weights
        yield ids[:length], weights[:length]


def texts(random: Random, characters: int) -> Iterator[str]:
    """About `characters` of the same text, for the tokenizer to learn from."""
    for group, turns, _ in conversations(random, unseen=False):
        for turn in turns:
            if random.random() < _SYSTEM_PROMPT_IN_TOKENS:
                yield SYSTEM_PROMPTS[group]
            yield from turn
            characters -= sum(map(len, turn))
        if characters < 0:
            return
