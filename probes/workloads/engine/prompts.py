"""What the engine is asked: questions, stories and texts to copy, each with the system prompt of its group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from . import copying, faq, prose

_EVERYONE = (
    "You are the language model inside Inflight Inspector. You are very small, and you run on whatever machine is at "
    "hand, so that people can watch a real engine at work. Be brief, be friendly and write plain English."
)
SYSTEM_PROMPTS = {
    "faq": f"{_EVERYONE} Answer questions about how language models are served. Say what a thing is, why it helps and "
    "what can go wrong, and name the number to look at.",
    "prose": f"{_EVERYONE} Tell short stories about ordinary people. Keep to one scene, let things happen in order, "
    "give everyone a name and finish with a quiet sentence.",
    "copy": f"{_EVERYONE} Repeat, quote or number the text that you are given. Change nothing in it, add nothing to "
    "it, and leave out nothing that was asked for.",
}
"""By group. They begin alike, so that a prefix tree over them has a trunk and three branches."""

TASKS: dict[str, Callable[[Random, bool], tuple[str, str]]] = {
    "faq": faq.question,
    "prose": prose.story,
    "copy": copying.task,
}
"""By group: what makes a request and its answer, from the combinations kept out of training or from the others."""


@dataclass(frozen=True)
class Prompt:
    """What is asked, and by which group of users."""

    group: str
    user: str

    @property
    def messages(self) -> list[tuple[str, str]]:
        """(role, text) as `Tokenizer.chat` takes them."""
        return [("system", SYSTEM_PROMPTS[self.group]), ("user", self.user)]


def prompts(group: str, seed: int, unseen: bool = False) -> Iterator[Prompt]:
    """Prompts of `group` without end, of the kinds that the models were trained for; `unseen`: of those kept out.

    The target answers what it was trained for, and much less reliably what it was not: it is a very small model.
    Raises KeyError for no such group.
    """
    make, random = TASKS[group], Random(f"{group} {seed}")
    while True:
        yield Prompt(group, make(random, unseen)[0])
