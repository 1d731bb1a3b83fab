"""When requests arrive and what they ask: the same for the same seed, whatever the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from probes.workloads.engine.prompts import SYSTEM_PROMPTS, TASKS
from probes.workloads.engine.tokens import ASSISTANT, USER, Tokenizer

BURST = range(4, 13)
"""Requests of one burst."""
_MEAN_BURST = sum(BURST) / len(BURST)
_HISTORIES = 6


@dataclass(frozen=True)
class Arrival:
    """A request that arrives `offset` ns after the beginning."""

    offset: int
    prompt: tuple[int, ...]
    max_tokens: int
    group: str


class Prompts:
    """Prompts without end: the system prompt of a group, for long ones the earlier turns of a conversation, a request.

    `mix` are shares of groups (faq, prose, copy), `prompt_tokens` shares of least lengths (as text). Long prompts of a
    group continue one of a few conversations, so that they begin alike. They are of the kinds that the target was
    trained for, and answers well.
    """

    def __init__(
        self, tokenizer: Tokenizer, mix: Mapping[str, float], prompt_tokens: Mapping[str, float], seed: int
    ) -> None:
        self._tokenizer = tokenizer
        self._mix = mix
        self._lengths = prompt_tokens
        self._seed = seed
        self._choices = Random(f"choices {seed}")
        self._asking = {group: Random(f"{group} {seed}") for group in mix}
        self._system = {group: tokenizer.chat([("system", SYSTEM_PROMPTS[group])], answer=False) for group in mix}
        self._histories: dict[tuple[str, int], tuple[Random, list[list[int]]]] = {}

    @property
    def reach(self) -> int:
        """Tokens that the longest kind of prompt has at the least."""
        asked = len([USER, "a word", ASSISTANT])
        systems = [len(ids) + asked for group, ids in self._system.items() if self._mix[group]]
        return max(*systems, *(int(least) for least, share in self._lengths.items() if share))

    def next(self) -> tuple[str, tuple[int, ...]]:
        """The next group and prompt."""
        group = _pick(self._choices, self._mix)
        least = int(_pick(self._choices, self._lengths))
        history = self._choices.randrange(_HISTORIES)
        asked = [USER, *self._tokenizer.encode(TASKS[group](self._asking[group], False)[0]), ASSISTANT]
        ids = list(self._system[group])
        turn = 0
        while len(ids) + len(asked) < least:
            ids += self._turn(group, history, turn)
            turn += 1
        return group, (*ids, *asked)

    def _turn(self, group: str, history: int, number: int) -> list[int]:
        random, turns = self._histories.setdefault(
            (group, history), (Random(f"history {group} {history} {self._seed}"), [])
        )
        while number >= len(turns):
            asked, answered = TASKS[group](random, False)
            turns.append(self._tokenizer.chat([("user", asked), ("assistant", answered)], answer=False))
        return turns[number]


class Arrivals:
    """Requests as they fall due. `kind` poisson: one by one, at random; burst: several at once, bursts at random.

    `rate` is the mean in requests per second, 0 for none; `output_tokens` are shares of output lengths (as text).
    """

    def __init__(self, kind: str, rate: float, prompts: Prompts, output_tokens: Mapping[str, float], seed: int) -> None:
        self._kind = kind
        self.rate = rate
        """Mean, requests per second; 0: none arrive."""
        self._prompts = prompts
        self._outputs = output_tokens
        self._times = Random(f"times {seed}")
        self._lengths = Random(f"lengths {seed}")
        # Time counted in mean intervals between requests: `_load` of them had passed at `_since`.
        self._since = 0
        self._load = 0.0
        self._next = 0.0
        self._several = 0
        self._advance()

    @property
    def next_offset(self) -> int | None:
        """When the next one falls due, ns; None at rate 0."""
        if self.rate <= 0:
            return None
        return self._since + max(round((self._next - self._load) * 1e9 / self.rate), 0)

    @property
    def reach(self) -> int:
        """Tokens that the longest kind of request has at the least, output included."""
        return self._prompts.reach + max(int(length) for length, share in self._outputs.items() if share)

    def change_rate(self, rate: float, now: int) -> None:
        """From `now` (ns) on have `rate` requests per second; the share of the wait that has passed stays passed."""
        self._load += max(now - self._since, 0) * self.rate / 1e9
        self._since = max(now, self._since)
        self.rate = rate

    def due(self, now: int, most: int | None = None) -> list[Arrival]:
        """Those that arrive by `now` (ns) and were not given before, at most `most`."""
        arrivals: list[Arrival] = []
        while most is None or len(arrivals) < most:
            offset = self.next_offset
            if offset is None or offset > now:
                break
            group, prompt = self._prompts.next()
            length = int(_pick(self._lengths, self._outputs))
            arrivals.append(Arrival(offset, prompt, length, group))
            self._advance()
        return arrivals

    def _advance(self) -> None:
        if self._several > 1:
            self._several -= 1
        elif self._kind == "burst":
            self._several = self._times.choice(BURST)
            self._next += self._times.expovariate(1.0) * _MEAN_BURST
        else:
            self._next += self._times.expovariate(1.0)


def _pick(random: Random, shares: Mapping[str, float]) -> str:
    return random.choices(list(shares), list(shares.values()))[0]
