"""The first words with a server: whether it is there, and what it says of itself."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from inspector.errors import Unreadable
from probes.server_http.access import TOKEN, Access
from probes.server_http.address import Address
from probes.server_http.client import Answer, Client, NoAnswerError
from probes.server_http.redaction import tree_without
from probes.server_http.words import details, shown

PATIENCE_S = 10.0
"""For each question. What the server has to say here costs it nothing."""
_SERVER_INFO = "/server_info"
_ASKED = (("/version", "version"), (_SERVER_INFO, "server settings"))


@dataclass(frozen=True)
class Greeting:
    """What it says for people, by name; and its settings as JSON tells them, None where it does not."""

    details: dict[str, str]
    settings: object


def greet(address: Address, access: Access, seconds: float | None = None) -> Greeting:
    """Ask it, within so many seconds. Raises Unreadable when nobody answers, or it wants something of us first."""
    until = time.monotonic() + min(2 * PATIENCE_S, seconds or 2 * PATIENCE_S)
    client = Client(address, access)
    told = {"server": access.without_token(str(address))}
    settings: object = None
    try:
        for path, key in _ASKED:
            try:
                answer = client.ask("GET", path, min(PATIENCE_S, max(until - time.monotonic(), 0.1)))
            except NoAnswerError as error:
                if path == _SERVER_INFO:
                    break  # It has answered before: what it records is more than what it says of itself.
                do = error.do or "check the address, and that it runs"
                raise Unreadable(f"cannot attach to {address}", str(error), do) from error
            _refuse(address, answer)
            if answer.status == 200:
                told[key] = details(answer.body, access.without_token)
                settings = _json(answer, access.token) if path == _SERVER_INFO else settings
    finally:
        client.close()
    return Greeting(told, settings)


def _refuse(address: Address, answer: Answer) -> None:
    what = f"cannot attach to {address}"
    if answer.status == 401:
        do = f"type it into the window's Attach (Ctrl+T), set {TOKEN}, or name its file with --token-file"
        raise Unreadable(what, "it wants a token, or another one", do)
    if 300 <= answer.status < 400:
        where = f"to {shown(answer.location, 200)}" if answer.location else "elsewhere"
        raise Unreadable(what, f"it sends us {where}, which is not followed", "attach to that address, if you trust it")


def _json(answer: Answer, token: str) -> object:
    try:
        found: object = tree_without(token, json.loads(answer.body))
    except (ValueError, RecursionError):
        return None
    return found
