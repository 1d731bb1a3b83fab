"""A request as its sender sees it, and the sequence of tokens as the engine works on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from probes.workloads.engine.blocks import Content, chain
from probes.workloads.engine.tokens import END


class Room(NamedTuple):
    """Most `tokens` that a prompt and its output can have together, and `why`: what sets that limit."""

    tokens: int
    why: str


@dataclass(eq=False)
class Request:
    """What is asked and what came of it. Times are ns on the monotonic clock, None until they come.

    `temperature` 0 is greedy. Generation ends at the token `end` (None: none ends it) or after `max_tokens`.
    `group` names its kind of prompt. `reason`, once it has left: stop (the end token), length, cancelled.
    `reused_tokens`: those of the prompt that were in the cache when it was first taken up.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int = 0
    end: int | None = END
    group: str = ""
    id: int = -1
    arrival: int | None = None
    scheduled: int | None = None
    first_token: int | None = None
    last_token: int | None = None
    finished: int | None = None
    output: list[int] = field(default_factory=list)
    reason: str | None = None
    reused_tokens: int = 0
    pauses: int = 0

    @property
    def left(self) -> int:
        """How many tokens it may still make."""
        return self.max_tokens - len(self.output)


@dataclass(eq=False)
class Sequence:
    """The engine's side of a request. Prompt and output together are `tokens`.

    `done` tokens have their keys and values in `blocks` (the block table); the drafter's cache, over the same blocks,
    has those of the first `drafted`. The first `published` blocks are known to the pool. `in_context` until all that
    is known has been computed, also after a pause.
    """

    request: Request
    tokens: list[int] = field(init=False)
    random: Random = field(init=False)
    salt: str = field(init=False, default="")
    blocks: list[int] = field(default_factory=list)
    done: int = 0
    drafted: int = 0
    published: int = 0
    in_context: bool = True
    _contents: list[Content] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = list(self.request.prompt)
        self.random = Random(self.request.seed)

    def worst_case(self, tokens_per_block: int) -> int:
        """Blocks that it holds at most, drafts included; the last token needs no room."""
        longest = len(self.request.prompt) + self.request.max_tokens - 1
        return -(-longest // tokens_per_block)

    def contents(self, count: int, tokens_per_block: int) -> list[Content]:
        """What its first `count` blocks hold when full."""
        for at in range(len(self._contents), count):
            part = tuple(self.tokens[at * tokens_per_block : (at + 1) * tokens_per_block])
            parent = self._contents[-1].hash if at else 0
            self._contents.append(Content(chain(parent, part, self.salt), parent, part))
        return self._contents[:count]

    def season(self, salt: str) -> None:
        """Have the hashes of its contents made with `salt`, so that they match only those made with it."""
        if salt != self.salt:
            self.salt = salt
            self._contents.clear()

    def forget(self) -> None:
        """Nothing of it is in the cache any more."""
        self.blocks = []
        self.done = self.drafted = self.published = 0
        self.in_context = True
