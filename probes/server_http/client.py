"""One HTTP exchange at a time: with time limits, a bound on what is read, and no redirects."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from inspector.errors import Usage
from inspector.report.text import plain

MOST_BYTES = 64 << 20
CONNECT_S = 5.0
SILENCE_S = 10.0
"""How long a server may say nothing; an idle /metrics takes 2 s by itself."""
WHOLE_S = 30.0
_PIECE = 1 << 16
_LONGEST_WHY = 200


class NoAnswerError(Exception):
    """There was no answer, in words."""


@dataclass(frozen=True)
class Answer:
    """Status and body; `cut` where there was more than is read, or it broke off. `received_ns` CLOCK_MONOTONIC, and
    `epoch_ns` the wall clock at that moment.
    """

    status: int
    body: bytes
    cut: bool
    received_ns: int
    epoch_ns: int


@dataclass(frozen=True)
class Address:
    """Where a server is."""

    scheme: str
    host: str
    port: int
    prefix: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"

    @property
    def is_here(self) -> bool:
        """Whether it is this machine, or a tunnel that begins on it."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def address(text: str) -> Address:
    """From an URL, or HOST:PORT. Raises Usage."""
    wrong = Usage(f"{text!r} is no address of a server", "", "it is like http://localhost:8000")
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError as error:
        raise wrong from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise wrong
    if parts.username or parts.password:
        raise Usage("an address with a password in it", "it would stand in the recording", "leave the password out")
    usual = 443 if parts.scheme == "https" else 80
    return Address(parts.scheme, parts.hostname, port or usual, parts.path.rstrip("/"))


class Client:
    """A connection that is made anew when it breaks. Of one thread; only `abort` may be called from another."""

    def __init__(self, address: Address, whole_s: float | None = None) -> None:
        self._address, self._whole_s = address, WHOLE_S if whole_s is None else whole_s
        self._connection: http.client.HTTPConnection | None = None
        # Its own reference: a connection lets go of it while the last answer is read.
        self._socket: socket.socket | None = None

    def ask(self, method: str, path: str) -> Answer:
        """Ask, and read the whole answer. Raises NoAnswerError."""
        # However slowly it drips: each piece is within the time limit of silence.
        watchdog = threading.Timer(self._whole_s, self.abort)
        watchdog.daemon = True
        watchdog.start()
        try:
            return self._ask(method, path, watchdog.finished)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise NoAnswerError("it does not answer in time" if watchdog.finished.is_set() else _why(error)) from error
        finally:
            watchdog.cancel()

    def close(self) -> None:
        """Hang up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._socket = None

    def abort(self) -> None:
        """Make an exchange that is going on fail at once."""
        sock = self._socket
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _ask(self, method: str, path: str, late: threading.Event) -> Answer:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect()
        headers = {"Accept-Encoding": "identity", "User-Agent": "inflight-inspector"}
        connection.request(method, self._address.prefix + path, headers=headers)
        response = connection.getresponse()
        pieces: list[bytes] = []
        size, cut = 0, False
        while True:
            try:
                # read1 gives what has come; read would wait for all of it, however slowly it drips.
                piece = response.read1(_PIECE)
            except (http.client.HTTPException, TimeoutError, ConnectionError):
                cut = True
                break
            if not piece:
                cut = late.is_set() or response.length not in (None, 0)
                break
            pieces.append(piece)
            size += len(piece)
            if size > MOST_BYTES:
                cut = True
                break
        received, epoch = time.monotonic_ns(), time.time_ns()
        response.close()
        if cut or response.will_close:
            self.close()
        return Answer(response.status, b"".join(pieces), cut, received, epoch)

    def _connect(self) -> http.client.HTTPConnection:
        where = self._address
        connection: http.client.HTTPConnection
        if where.scheme == "https":
            connection = http.client.HTTPSConnection(where.host, where.port, timeout=CONNECT_S)
        else:
            connection = http.client.HTTPConnection(where.host, where.port, timeout=CONNECT_S)
        connection.connect()
        connection.sock.settimeout(SILENCE_S)
        self._socket = connection.sock
        return connection


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError | socket.timeout):
        return "it does not answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(error, socket.gaierror):
        return "there is no host of that name"
    if isinstance(error, ssl.SSLError):
        return f"no secure connection: {error.reason or error}"
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return plain(" ".join(words.split()))[:_LONGEST_WHY]
