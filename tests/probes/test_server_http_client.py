"""One exchange with servers that do what they should not: redirects, tokens, certificates; and with odd addresses."""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.errors import Unreadable, Usage
from probes.server_http.access import Access, access
from probes.server_http.address import Address, address, process_number
from probes.server_http.client import Client, NoAnswerError
from probes.server_http.greeting import greet
from probes.server_http.words import details, shown
from tests.probes.raw_server import answering, ask, raw
from tests.probes.stand_in_server import stand_in

TOKEN = "s3cret-token"


def test_redirects_are_not_followed_and_no_token_goes_elsewhere() -> None:
    with stand_in() as other:
        where = f"{other.url}/version"

        def serve(connection: socket.socket, came: bytes) -> None:
            assert f"Authorization: Bearer {TOKEN}".encode() in came
            connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode())

        with raw(serve) as listening:
            answer = ask(listening, given=Access(TOKEN))
            assert (answer.status, answer.location) == (302, where)
            here = address(f"http://127.0.0.1:{listening.getsockname()[1]}")
            with pytest.raises(Unreadable, match=r"sends us to http://127\.0\.0\.1"):
                greet(here, Access(TOKEN))
        assert not other.asked


def test_what_a_server_repeats_of_the_token_is_not_kept() -> None:
    with stand_in() as server:
        server.say("GET /version", then={"your token": TOKEN, "\x1b]0;title": "\u202eback"})
        server.say("GET /server_info", then={"pp_size": 2})
        told = greet(address(server.url), Access(TOKEN))
    assert TOKEN not in json.dumps(told.details)
    assert told.details["version"].startswith('{"your token":"***"')
    assert "\x1b" not in told.details["version"]
    assert "\u202e" not in told.details["version"]
    assert told.settings == {"pp_size": 2}
    assert TOKEN not in repr(Access(TOKEN))


def test_a_server_that_wants_a_token_is_told_of_in_one_sentence() -> None:
    with stand_in() as server:
        server.say("GET /version", status=401, then="no")
        server.answers["GET /version"].appendleft((401, b"no"))
        with pytest.raises(Unreadable, match="INFLIGHT_TOKEN"):
            greet(address(server.url), Access())


def test_a_server_that_does_not_finish_its_settings_is_attached_to_all_the_same() -> None:
    release = threading.Event()
    with stand_in() as server:
        server.say("GET /version", then={"version": "1"})
        server.say("GET /server_info", lambda _: release.wait(20))
        told = greet(address(server.url), Access(), 0.5)
        release.set()
    assert set(told.details) == {"server", "version"}


def test_ipv6() -> None:
    with raw(answering("Content-Length: 2", b"[]"), socket.AF_INET6, ("::1", 0)) as listening:
        where = address(f"http://[::1]:{listening.getsockname()[1]}")
        asking = Client(where)
        assert asking.ask("GET", "/metrics").body == b"[]"
        asking.close()
    assert where.is_here


def test_a_socket_with_a_file_name(tmp_path: Path) -> None:
    place = tmp_path / "a socket"
    with raw(answering("Content-Length: 2", b"[]"), socket.AF_UNIX, str(place)):
        where = address(f"unix:{place}")
        asking = Client(where)
        assert asking.ask("GET", "/metrics").body == b"[]"
        asking.close()
    assert where.is_here
    with pytest.raises(NoAnswerError):
        Client(address(f"unix:{tmp_path}/none")).ask("GET", "/")
    with pytest.raises(NoAnswerError):
        Client(Address("unix", "x" * 500, 0, "")).ask("GET", "/")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that signs itself, and its key beside it."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem"


class _Fine(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(self.headers["Authorization"]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def secure(certificate: Path) -> Iterator[int]:
    """The port of a server with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))

    class Quiet(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass  # who does not trust it hangs up

    server = Quiet(("127.0.0.1", 0), _Fine)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join(10)


def test_certificates(certificate: Path, secure: int, tmp_path: Path) -> None:
    def body(host: str, given: Access) -> bytes:
        asking = Client(address(f"https://{host}:{secure}"), given)
        try:
            return asking.ask("GET", "/").body
        finally:
            asking.close()

    with pytest.raises(NoAnswerError, match=r"certificate is not trusted") as found:
        body("localhost", access({}, None, None, False))
    assert "--ca FILE" in found.value.do
    with pytest.raises(Unreadable, match=r"certificate is not trusted .*\. Name .*--ca FILE.*Ctrl\+T"):
        greet(address(f"https://localhost:{secure}"), access({}, None, None, False))
    # Nobody in between had a chance to read it before.
    token = {"INFLIGHT_TOKEN": f"{TOKEN}\n"}
    assert body("localhost", access(token, None, str(certificate), False)) == f'"Bearer {TOKEN}"'.encode()
    assert body("127.0.0.1", access({}, None, None, True)) == b"null"
    with pytest.raises(NoAnswerError, match="not trusted"):
        body("127.0.0.1", access({}, None, str(certificate), False))
    with pytest.raises(NoAnswerError):
        Client(address(f"http://localhost:{secure}")).ask("GET", "/", 1.0)
    (tmp_path / "none.pem").write_text("nothing")
    for ca in ("none.pem", "absent.pem"):
        with pytest.raises(Unreadable, match=ca):
            access({}, None, str(tmp_path / ca), False)
    with pytest.raises(Usage, match="--ca"):
        access({}, None, "a", True)


def test_tokens(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"  {TOKEN}\n")
    assert access({"INFLIGHT_TOKEN": "other"}, str(file), None, False).token == TOKEN
    assert access({}, None, None, False).token == ""
    for wrong in ("two words", "a\x1bb", "a\r\nX-Evil: 1", "\u00e9"):
        with pytest.raises(Usage) as error:
            access({"INFLIGHT_TOKEN": wrong}, None, None, False)
        assert wrong not in str(error.value)
    file.write_text("\n")
    with pytest.raises(Usage, match="no token"):
        access({}, str(file), None, False)
    with pytest.raises(Unreadable, match="absent"):
        access({}, str(tmp_path / "absent"), None, False)


@pytest.mark.parametrize(
    ("text", "number"), [("4711", 4711), ("0", 0), ("localhost", None), ("10.0.0.1", None), ("", None), ("-1", None)]
)
def test_numbers_of_processes(text: str, number: int | None) -> None:
    assert process_number(text) == number


@pytest.mark.parametrize("text", ["\u00b2", "\u0663", "\u2460", "1" * 5000, "\u4e94", "1\u00b2"])
def test_odd_digits_number_no_process(text: str) -> None:
    with pytest.raises(Usage):
        process_number(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://h:\u00b2",
        "http://h:\u0668",
        "http://h: 80",
        "http://h:8_0",
        "http://h\x1b[2J",
        "http://h/a b",
        "h?key=1",
    ],
)
def test_odd_addresses(text: str) -> None:
    with pytest.raises(Usage):
        address(text)


@pytest.mark.parametrize(
    ("text", "prefix"), [("h:8002/metrics", ""), ("h/api/prometheus/metrics/", "/api"), ("h/\u00e9", "/%C3%A9")]
)
def test_a_path_that_is_asked_anyway_is_no_part_of_the_address(text: str, prefix: str) -> None:
    assert address(text).prefix == prefix


def test_texts_are_harmless() -> None:
    assert shown("a\x1b[2J\x9b\u202e\ud800\n") == "a\\x1b[2J\\x9b\\u202e\\ud800\\x0a"
    assert len(shown("x" * 10_000, 20)) == 20
    assert details(b'{"a": "\\u001b[2J\xc3\xa9"}', str) == '{"a":"\\u001b[2J\u00e9"}'
    assert details(b"\xff <b>\r\n x", str) == "\ufffd <b> x"


def test_a_connection_that_was_closed_meanwhile_is_made_anew() -> None:
    """Servers hang up after some seconds of silence; that is no failure of theirs."""
    came: list[bytes] = []

    def serve(connection: socket.socket, asked: bytes) -> None:
        came.append(asked)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")

    with raw(serve) as listening:
        asking = Client(address(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        for _ in range(3):
            assert asking.ask("GET", "/metrics").body == b"[]"
        asking.close()
    assert len(came) == 3
