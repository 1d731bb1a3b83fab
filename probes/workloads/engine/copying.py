"""Requests to repeat or quote a text: what an n-gram drafter is good at."""

from __future__ import annotations

import re
from random import Random

from . import faq, prose, scenes
from .facts import FACTS
from .grammar import fill, sentence

_REPEAT = "{Repeat this text|Copy this text|Repeat exactly|Say this again|Write this down once more}"
_QUOTE = "{Quote the sentence|Give me the sentence|Find the sentence} that {starts|begins} with"
_NUMBER = "{Number these lines|Make a numbered list of this|Put numbers in front of these lines}"
_PLAIN = re.compile(r"[a-z]{3,}")
VOCABULARY = tuple(
    sorted(
        {
            word
            for text in (
                *map(" ".join, FACTS.values()),
                *scenes.WORDS.values(),
                scenes.ROLES,
                scenes.THINGS,
            )
            for word in _PLAIN.findall(text)
        }
    )
)


def task(random: Random, unseen: bool) -> tuple[str, str]:
    """A request and the text it wants back.

    The texts are drawn at random, sentences of stories and answers among them; `unseen` says from which side of those.
    """
    kind = random.random()
    if kind < 0.5:
        text = _text(random, unseen)
        return f"{fill(_REPEAT, random)}: {text}", text
    if kind < 0.8:
        sentences = _sentences(random, unseen, random.randint(3, 5))
        wanted = random.choice(sentences)
        start = " ".join(wanted.split()[:3])
        return f'{fill(_QUOTE, random)} "{start}": {" ".join(sentences)}', wanted
    lines = [_line(random) for _ in range(random.randint(3, 7))]
    numbered = "\n".join(f"{at}. {line}" for at, line in enumerate(lines, 1))
    return f"{fill(_NUMBER, random)}:\n" + "\n".join(lines), numbered


def _text(random: Random, unseen: bool) -> str:
    kind = random.random()
    if kind < 0.4:
        return " ".join(_sentences(random, unseen, random.randint(2, 5)))
    if kind < 0.7:
        return sentence(" ".join(random.choices(VOCABULARY, k=random.randint(8, 30)))) + "."
    return "\n".join(_line(random) for _ in range(random.randint(3, 8)))


def _sentences(random: Random, unseen: bool, count: int) -> list[str]:
    """Different sentences, none of which starts with the same three words as another."""
    found: dict[str, str] = {}
    while len(found) < count:
        source = prose.story if random.random() < 0.6 else faq.question
        for text in source(random, unseen)[1].replace("\n", " ").split(". "):
            found.setdefault(" ".join(text.split()[:3]), text.rstrip(".") + ".")
    chosen = list(found.values())
    random.shuffle(chosen)
    return chosen[:count]


def _line(random: Random) -> str:
    kind = random.randrange(4)
    words = random.choices(VOCABULARY, k=random.randint(1, 4))
    if kind == 0:
        return f"{random.randint(1, 9999)} {' '.join(words)}"
    if kind == 1:
        return f"{' '.join(words)} = {random.randint(0, 999)}"
    if kind == 2:
        return "".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789-_", k=random.randint(4, 12)))
    return ", ".join(words)
