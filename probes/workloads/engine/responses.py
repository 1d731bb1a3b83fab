"""The JSON of answers, in the shapes of /v1/completions and /v1/chat/completions, whole and in pieces."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probes.workloads.engine.asks import Ask, Refused

Json = Mapping[str, Any]


@dataclass
class Choice:
    """One answer as it grows. `reason` is stop, length or None while it is being made."""

    index: int
    prompt_tokens: int
    text: str = ""
    tokens: int = 0
    reason: str | None = None
    stopped_at: str | None = None
    """The stop text that was reached, where it was one."""


@dataclass(frozen=True)
class Reply:
    """What all parts of the answer to one request have in common."""

    ask: Ask
    model: str
    created: int = field(default_factory=lambda: int(time.time()))
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def whole(self, choices: list[Choice]) -> Json:
        """The answer in one piece."""
        return {
            **self._head("chat.completion" if self.ask.chat else "text_completion"),
            "choices": [self._choice(choice) for choice in choices],
            "usage": usage(choices),
        }

    def opening(self, choice: Choice) -> Json | None:
        """What a stream begins with: in a chat, who speaks."""
        return self._chunk(choice, {"role": "assistant", "content": ""}) if self.ask.chat else None

    def piece(self, choice: Choice, text: str) -> Json:
        """A part of a stream: `text` is new; the last part of a choice has its reason."""
        return self._chunk(choice, {"content": text} if self.ask.chat else text)

    def closing(self, choices: list[Choice]) -> Json:
        """The last part of a stream that was asked to give the usage."""
        return {**self._head(self._piece_kind()), "choices": [], "usage": usage(choices)}

    def _piece_kind(self) -> str:
        return "chat.completion.chunk" if self.ask.chat else "text_completion"

    def _head(self, kind: str) -> dict[str, Any]:
        prefix = "chatcmpl" if self.ask.chat else "cmpl"
        return {"id": f"{prefix}-{self.id}", "object": kind, "created": self.created, "model": self.model}

    def _choice(self, choice: Choice) -> Json:
        said = {"message": {"role": "assistant", "content": choice.text}} if self.ask.chat else {"text": choice.text}
        return {"index": choice.index, **said, **_ending(choice)}

    def _chunk(self, choice: Choice, new: object) -> Json:
        said = {"delta": new} if self.ask.chat else {"text": new}
        body = {"index": choice.index, **said, **_ending(choice)}
        return {**self._head(self._piece_kind()), "choices": [body]}


def _ending(choice: Choice) -> dict[str, Any]:
    return {"logprobs": None, "finish_reason": choice.reason, "stop_reason": choice.stopped_at}


def usage(choices: list[Choice]) -> Json:
    """Tokens of the prompts and of the answers."""
    prompt, made = sum(choice.prompt_tokens for choice in choices), sum(choice.tokens for choice in choices)
    return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}


def error(refused: Refused) -> Json:
    """The body of an answer that is an error."""
    return {
        "object": "error",
        "message": refused.message,
        "type": refused.kind,
        "param": None,
        "code": refused.status,
    }


def event(body: Json | str) -> bytes:
    """One server-sent event."""
    data = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return f"data: {data}\n\n".encode()
