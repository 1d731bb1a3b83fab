"""Short stories from a small grammar of scenes, and the requests that ask for one."""

from __future__ import annotations

import re
from random import Random

from . import scenes
from .grammar import fill, held_out, sentence

ASKED = (
    "{Write|Tell me} a {short|little} story about a {role} {place} and a {thing}.",
    "{I would like|Please write} a story in which a {role} {place} {finds|has} a {thing}.",
    "A story, please: a {role} {place}, a {thing}.",
    "{What happened to|Tell me about} the {role} {place} with the {thing}?",
)
_SENTENCE_LEFT_OUT = 0.06


def story(random: Random, unseen: bool) -> tuple[str, str]:
    """A request for a story and a story, about role and thing kept out of training (`unseen`) or about others."""
    while True:
        role, thing = (random.choice(words.split("|")) for words in (scenes.ROLES, scenes.THINGS))
        if held_out(role, thing) is unseen:
            break
    woman = random.random() < 0.5
    names = (scenes.WOMEN if woman else scenes.MEN).split("|")
    name = random.choice(names)
    bound = {
        **scenes.WORDS,
        "role": role,
        "thing": thing,
        "place": random.choice(scenes.PLACES.split("|")),
        "name": name,
        "friend": random.choice([other for other in f"{scenes.WOMEN}|{scenes.MEN}".split("|") if other != name]),
        "he": "she" if woman else "he",
        "him": "her" if woman else "him",
        "his": "her" if woman else "his",
    }
    stages = (scenes.OPENINGS, *scenes.SCENES[random.choice(list(scenes.SCENES))], scenes.ENDINGS)
    told = [random.choice(stage) for at, stage in enumerate(stages) if at == 0 or random.random() > _SENTENCE_LEFT_OUT]
    answer = " ".join(sentence(fill(line, random, bound)) for line in told)
    return _articles(fill(random.choice(ASKED), random, bound)), _articles(answer)


def _articles(text: str) -> str:
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
