"""Attaching from the window: a token that nobody else reads, certificates, and what to do about a refusal."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication, QLineEdit
from pytestqt.qtbot import QtBot

from inspector.errors import Usage
from tests.probes.stand_in_server import StandIn, stand_in
from tests.ui.user import User
from ui.run import launch
from ui.run.dialogs import AttachDialog
from ui.views.run import Run

_WAIT_MS = 60_000
_TOKEN = "a-secret-of-ours"


@pytest.fixture(autouse=True)
def own_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "recordings", lambda: tmp_path / "recordings")
    monkeypatch.delenv("INFLIGHT_TOKEN", raising=False)


@pytest.fixture
def server() -> Iterator[StandIn]:
    """Lets in who has the token, and shows what it was told to who has not."""

    def guarded(body: bytes) -> Callable[[Any], None]:
        def answer(handler: Any) -> None:
            right = handler.headers["Authorization"] == f"Bearer {_TOKEN}"
            said = body if right else b'{"error": "unauthorized"}'
            handler.send_response(200 if right else 401)
            handler.send_header("Content-Length", str(len(said)))
            handler.end_headers()
            handler.wfile.write(said)

        return answer

    with stand_in() as server:
        server.say("GET /version", then=guarded(b'{"version": "1.2.0"}'))
        server.say("GET /metrics", then=guarded(b"[]"))
        yield server


def attach(user: User, monkeypatch: pytest.MonkeyPatch, fill: Callable[[AttachDialog], None]) -> None:
    """Ctrl+T, fill the fields, Enter."""

    def answer(dialog: AttachDialog) -> int:
        dialog.show()
        QApplication.processEvents()
        fill(dialog)
        dialog.accept()
        return dialog.result()

    monkeypatch.setattr(AttachDialog, "exec", answer)
    user.press("Ctrl+T")


def view_of(user: User) -> Run:
    view = user.window.views["run"]
    assert isinstance(view, Run)
    return view


def test_a_token_reaches_the_server_and_nothing_else(
    user: User, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: StandIn
) -> None:
    def fill(dialog: AttachDialog) -> None:
        dialog.target.setEditText(server.url)
        dialog.token.line.setText(_TOKEN)
        assert dialog.token.line.echoMode() == QLineEdit.EchoMode.Password
        assert _TOKEN not in dialog.token.line.displayText()
        dialog.token.shown.click()
        assert dialog.token.line.displayText() == _TOKEN
        dialog.token.shown.click()

    attach(user, monkeypatch, fill)
    child = user.window.desk.child
    qtbot.waitUntil(lambda: server.count("GET /metrics") > 2, timeout=_WAIT_MS)
    assert child.launch is not None
    assert child._process is not None
    words = Path(f"/proc/{child._process.pid}/cmdline").read_bytes()
    child.stop()
    qtbot.waitUntil(lambda: not child.is_alive, timeout=_WAIT_MS)
    assert child.code == 0, list(child.lines.last)
    settings = json.dumps(user.window.host.settings.values.launched)
    shown = [view_of(user).output.text.toPlainText(), view_of(user)._title.toolTip(), repr(child.launch), settings]
    encoded = base64.b64encode(_TOKEN.encode())
    for text in (*(each.encode() for each in shown), words):
        assert _TOKEN.encode() not in text
        assert encoded not in text
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "recording.json" for path in kept)
    assert not [path for path in kept if _TOKEN.encode() in path.read_bytes()]
    assert launch.again(child.launch).environment == (("INFLIGHT_TOKEN", _TOKEN),)


def test_a_refusal_says_what_to_do(user: User, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, server: StandIn) -> None:
    attach(user, monkeypatch, lambda dialog: dialog.target.setEditText(server.url))
    child, view = user.window.desk.child, view_of(user)
    qtbot.waitUntil(lambda: not child.is_alive, timeout=_WAIT_MS)
    assert child.code == 3
    assert "it wants a token, or another one. Type it into the window's Attach" in view._why.text()
    assert view._attach.isVisibleTo(view)
    seen: list[str] = []
    monkeypatch.setattr(AttachDialog, "exec", lambda dialog: seen.append(dialog.target.currentText()) or 0)
    view._attach.click()
    assert seen == [server.url]


def test_the_authority_is_named_and_remembered(user: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[launch.Launch] = []
    monkeypatch.setattr(user.window.desk.child, "start", started.append)
    authority = tmp_path / "authority.pem"
    wrong: list[str] = []

    def fill(dialog: AttachDialog) -> None:
        dialog.target.setEditText("https://localhost:8443")
        dialog.certificate.line.setText(str(authority))
        dialog.accept()
        wrong.append(dialog._wrong.text())
        dialog.token.line.setText("two words")
        authority.write_text("")
        dialog.accept()
        wrong.append(dialog._wrong.text())
        dialog.token.line.clear()

    attach(user, monkeypatch, fill)
    assert f"There is no {authority}".lower() in wrong[0].lower()
    assert "this is no token" in wrong[1]
    argv = started[0].argv
    assert argv[argv.index("--ca") + 1] == str(authority)
    assert started[0].environment == ()
    seen: list[str] = []
    monkeypatch.setattr(AttachDialog, "exec", lambda dialog: seen.append(dialog.certificate.line.text()) or 0)
    user.press("Ctrl+T")
    assert seen == [str(authority)]


@pytest.mark.parametrize("target", ["http://me:secret@host:8000", "host:8000/?key=secret", "me@host"])
def test_addresses_that_would_tell_a_secret_are_not_taken(target: str) -> None:
    with pytest.raises(Usage, match="a token has a field of its own") as found:
        launch.attach(target)
    assert "secret" not in str(found.value)
