"""The token never reaches a file or the terminal, however a server repeats it."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.errors import Unreadable
from probes.server_http.access import Access
from probes.server_http.address import address
from probes.server_http.greeting import greet
from probes.server_http.poller import METRICS, PROMETHEUS
from probes.server_http.redaction import HIDDEN, tree_without, without
from probes.server_http.words import details
from tests.probes.attached import asked, hurry, record
from tests.probes.raw_server import raw
from tests.probes.stand_in_server import pytorch, stand_in

TOKEN = "sEcr3t/q7x+w9z=="
PARTS = ("sEcr3t", "q7x", "w9z")
_JSON = rb'{"auth":"Bearer sEcr3t\/q7x\u002bw9z=="}'


def _redirect(handler: Any) -> None:
    handler.send_response(302)
    handler.send_header("Location", f"http://127.0.0.1:1/login?token={TOKEN}&again={quote(TOKEN, safe='')}")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def test_no_file_of_a_recording_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    hurry(monkeypatch)
    monkeypatch.setattr("probes.server_http.run._SAY_S", 0.0)
    figures = (
        f'# TYPE foo gauge\n# UNIT foo {TOKEN}\nfoo{{auth="Bearer {TOKEN}"}} 1\nfoo{{auth="b"}} 2\n'
        f'{{"x {TOKEN}",a="1"}} 3\nbar_info{{key="{TOKEN}",{{}}}} 1\ntrtllm_config_info{{key="{TOKEN}"}} 1\n'
    )
    with stand_in() as server:
        server.say("GET /version", _JSON, then=b"{}")
        server.say("GET /server_info", _JSON.replace(b"auth", b"model"))
        server.say("GET /metrics", [pytorch(1)], then=_redirect)
        server.say("GET /prometheus/metrics", then=figures.encode())
        out = tmp_path / "a.inflight"
        both = [asked(server, f"GET {METRICS}", 4), asked(server, f"GET {PROMETHEUS}", 3)]
        trace = record(server, out, lambda: all(each() for each in both), Access(TOKEN))
    assert trace.info.details["version"] == f'{{"auth":"Bearer {HIDDEN}"}}'
    printed = capsys.readouterr()
    everything = b"".join(file.read_bytes() for file in out.rglob("*") if file.is_file())
    everything += "".join([*trace.names, printed.out, printed.err]).encode()
    assert HIDDEN.encode() in everything
    assert [part for part in PARTS if part.encode() in everything] == []


def test_a_redirect_and_a_first_line_that_repeat_it_are_told_without_it() -> None:
    with stand_in() as server:
        server.say("GET /version", then=_redirect)
        with pytest.raises(Unreadable, match=r"token=\*\*\*&again=\*\*\*") as refused:
            greet(address(server.url), Access(TOKEN))
    assert TOKEN not in str(refused.value)
    # It is taken out before the text is cut: of a token at the end of what is shown nothing is left.
    for before in range(180, 200):
        said = b"X" * before + TOKEN.encode() + b"\r\n\r\n"
        with raw(lambda connection, _, said=said: connection.sendall(said)) as listening:  # type: ignore[misc]
            here = address(f"http://127.0.0.1:{listening.getsockname()[1]}")
            with pytest.raises(Unreadable) as refused:
                greet(here, Access(TOKEN))
        assert [part for part in PARTS if part in str(refused.value)] == []


def _written(token: str) -> list[str]:
    once = json.dumps(token)
    return [
        token,
        once,
        json.dumps(once),
        json.dumps(json.dumps(once)),
        once.replace("/", "\\/"),
        "".join(f"\\u{ord(letter):04X}" for letter in token),
        "".join(f"\\x{ord(letter):02x}" for letter in token),
        quote(token, safe=""),
        quote(quote(token, safe=""), safe=""),
        quote(token).lower() if token.islower() else quote(token),
        html.escape(token),
        "".join(f"&#{ord(letter)};" for letter in token),
        "".join(f"&#x{ord(letter):X};" for letter in token),
    ]


_TOKENS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40)


@given(_TOKENS, st.sampled_from(["", "before ", '"', "\\", "%25"]), st.sampled_from(["", " after", '"', "&"]))
def test_all_spellings_of_it_are_found(token: str, before: str, after: str) -> None:
    for text in _written(token):
        found = without(token, f"{before}{text}{after}")
        assert HIDDEN in found, text
        assert token not in found


@given(_TOKENS, st.text(max_size=50))
def test_other_texts_stay(token: str, text: str) -> None:
    if not any(spelling in text for spelling in _written(token)):
        assert without(token, text) == text
    assert without("", text) == text


def test_it_is_found_in_what_was_decoded() -> None:
    assert details(_JSON, Access(TOKEN).without_token) == f'{{"auth":"Bearer {HIDDEN}"}}'
    assert tree_without(TOKEN, {TOKEN: [1, None, {"a": f"b{TOKEN}"}]}) == {HIDDEN: [1, None, {"a": f"b{HIDDEN}"}]}


@pytest.mark.parametrize("token", ["\\\\\\a", "aaaaaaaa", "%%%%", "&&&&;", "a\\\\b"])
@pytest.mark.parametrize("letter", ["\\", "a", "%25", "&#0", "&#x0", "a\\"])
def test_no_text_makes_the_search_slow(token: str, letter: str) -> None:
    # Where it goes back and forth, this takes minutes.
    without(token, letter * 200_000)
