"""What a client may ask of /v1/completions and /v1/chat/completions, checked before the engine hears of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from probes.workloads.engine.request import Room
from probes.workloads.engine.tokens import Tokenizer

DEFAULT_MAX_TOKENS = 16
"""What /v1/completions makes when it is not told; /v1/chat/completions makes as many as fit."""
MOST_PROMPTS = 64
MOST_STOPS = 16


class Refused(Exception):
    """A request that is answered by an error; `status` is the HTTP code, `kind` the type in the error's JSON."""

    def __init__(self, status: int, message: str, kind: str = "BadRequestError") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind


@dataclass(frozen=True)
class Ask:
    """A checked request. `prompts` are token ids; each becomes a choice of the answer."""

    chat: bool
    prompts: tuple[tuple[int, ...], ...]
    max_tokens: int
    temperature: float
    seed: int | None
    stop: tuple[str, ...]
    ignore_end: bool
    stream: bool
    usage_at_end: bool
    """In a stream: whether a last chunk gives the usage."""
    echo: bool


# What this engine does not do, with the values that ask for nothing.
_ONLY: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "logprobs": (False, 0),
    "top_logprobs": (0,),
    "top_p": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "suffix": ("",),
    "logit_bias": ({},),
    "tools": ([],),
    "response_format": ({"type": "text"},),
    "use_beam_search": (False,),
    "min_tokens": (0,),
}


def parse(body: bytes, *, chat: bool, model: str, system: str, tokenizer: Tokenizer, room: Room) -> Ask:
    """The request in `body` (JSON). `room` is for prompt and answer together.

    `system` opens a chat that has no system message, as the model's chat template does; "" none.

    Raises Refused with what is wrong; 404 where another model is asked for.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise Refused(400, "the body must be a JSON object")
    fields = {name: value for name, value in given.items() if value is not None}
    if fields.get("model", model) != model:
        raise Refused(404, f"the model {fields['model']!r} does not exist; there is {model!r}", "NotFoundError")
    for name, allowed in _ONLY.items():
        if name in fields and fields[name] not in allowed:
            raise Refused(400, f"{name} {fields[name]!r} is not supported by this engine")
    prompts = _messages(fields, system, tokenizer) if chat else _prompts(fields, tokenizer)
    prompt = max(len(prompt) for prompt in prompts)
    left = room.tokens - prompt
    limit = f"prompt and answer together can have {room.tokens}: {room.why}"
    if left < 1:
        raise Refused(400, f"the prompt has {prompt} tokens; {limit}")
    asked = _max_tokens(fields, chat)
    if asked is not None and asked > left:
        raise Refused(400, f"the prompt has {prompt} tokens and max_tokens is {asked}; {limit}")
    if asked is None:
        asked = left if chat else min(left, DEFAULT_MAX_TOKENS)
    options = fields.get("stream_options", {})
    return Ask(
        chat=chat,
        prompts=prompts,
        max_tokens=asked,
        temperature=_number(fields, "temperature", 1.0, 0.0, 10.0),
        seed=_whole(fields, "seed", None, 0, 2**63 - 1),
        stop=_stops(fields),
        ignore_end=_flag(fields, "ignore_eos"),
        stream=_flag(fields, "stream"),
        usage_at_end=_flag(options, "include_usage") if isinstance(options, dict) else False,
        echo=_flag(fields, "echo"),
    )


def _max_tokens(fields: dict[str, Any], chat: bool) -> int | None:
    name = "max_completion_tokens" if chat and "max_completion_tokens" in fields else "max_tokens"
    return _whole(fields, name, None, 1, 2**31 - 1)


def _prompts(fields: dict[str, Any], tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    prompt = fields.get("prompt")
    if isinstance(prompt, str) or (isinstance(prompt, list) and prompt and not isinstance(prompt[0], (str, list))):
        prompt = [prompt]
    if not isinstance(prompt, list) or not 1 <= len(prompt) <= MOST_PROMPTS:
        raise Refused(400, f"prompt must be a text, a list of token ids, or a list of 1 to {MOST_PROMPTS} of these")
    return tuple(_ids(one, tokenizer) for one in prompt)


def _ids(prompt: object, tokenizer: Tokenizer) -> tuple[int, ...]:
    if isinstance(prompt, str):
        ids = tokenizer.encode(prompt)
    elif isinstance(prompt, list):
        ids = prompt
    else:
        raise Refused(400, "each prompt must be a text or a list of token ids")
    if not ids:
        raise Refused(400, "a prompt must not be empty")
    for token in ids:
        if type(token) is not int or not 0 <= token < len(tokenizer):
            raise Refused(400, f"token id {token!r} is not a whole number of 0 to {len(tokenizer) - 1}")
    return tuple(ids)


def _messages(fields: dict[str, Any], system: str, tokenizer: Tokenizer) -> tuple[tuple[int, ...], ...]:
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused(400, "messages must be a list of at least one {role, content}")
    said: list[tuple[str, str]] = []
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("system", "user", "assistant"):
            raise Refused(400, f"a message's role must be system, user or assistant, not {role!r}")
        said.append((role, _content(message.get("content"))))
    if system and said[0][0] != "system":
        said.insert(0, ("system", system))
    return (tuple(tokenizer.chat(said)),)


def _content(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content
        ]
        if all(isinstance(part, str) for part in parts):
            return "".join(str(part) for part in parts)
    raise Refused(400, "a message's content must be a text or a list of text parts")


def _stops(fields: dict[str, Any]) -> tuple[str, ...]:
    stop = fields.get("stop", [])
    stops = [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or len(stops) > MOST_STOPS or not all(isinstance(one, str) and one for one in stops):
        raise Refused(400, f"stop must be a text or a list of at most {MOST_STOPS} texts, none of them empty")
    return tuple(stops)


def _flag(fields: dict[str, Any], name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise Refused(400, f"{name} must be true or false, not {value!r}")
    return value


def _number(fields: dict[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise Refused(400, f"{name} must be a number of {low:g} to {high:g}, not {value!r}")
    return float(value)


def _whole(fields: dict[str, Any], name: str, default: int | None, low: int, high: int) -> int | None:
    value = fields.get(name, default)
    if value is default:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Refused(400, f"{name} must be a whole number of {low} to {high}, not {value!r}")
    return value


class Cut:
    """Cuts a text that comes in pieces at the one of `stops` that ends first, holding back what may begin one."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._held = ""
        self.reached: str | None = None
        """The stop that was reached; it and what follows are not given out."""

    def push(self, text: str) -> str:
        """What can be given out now."""
        if self.reached is not None:
            return ""
        self._held += text
        found = [(at + len(stop), at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            _, at, self.reached = min(found)
            out, self._held = self._held[:at], ""
            return out
        keep = max((_overlap(self._held, stop) for stop in self._stops), default=0)
        out, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return out

    def finish(self) -> str:
        """What was held back and turned out to be no stop."""
        out, self._held = self._held, ""
        return out


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop` without being all of it."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if stop.startswith(text[-size:])), 0)
