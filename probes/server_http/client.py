"""One HTTP exchange at a time: within a time limit for all of it, a bound on what is read, and no redirects."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from probes.server_http.access import Access
from probes.server_http.address import Address
from probes.server_http.words import shown

MOST_BYTES = 64 << 20
CONNECT_S = 5.0
SILENCE_S = 10.0
"""How long a server may say nothing; an idle /metrics takes 2 s by itself."""
WHOLE_S = 30.0
_PIECE = 1 << 16
_LONGEST_WHY = 200
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


TRUST = "name the certificate of the authority that signed it: --ca FILE, or the field in the window's Attach (Ctrl+T)"


class NoAnswerError(Exception):
    """There was no answer, in words that are safe to print; and what to `do`, where that can be said."""

    def __init__(self, why: str, do: str = "") -> None:
        super().__init__(why)
        self.do = do


@dataclass(frozen=True)
class Answer:
    """Status and body; `cut` where there was more than is read, or it broke off. `asked_ns` and `received_ns` are
    CLOCK_MONOTONIC, `epoch_ns` the wall clock when it was received; `location` is where a redirect leads (without the
    token).
    """

    status: int
    body: bytes
    cut: bool
    received_ns: int
    epoch_ns: int
    asked_ns: int = 0
    location: str = ""


class Client:
    """A connection that is made anew when it breaks. Of one thread; only `abort` may be called from another."""

    def __init__(self, address: Address, access: Access | None = None) -> None:
        self._address, self._access = address, access or Access()
        self._connection: http.client.HTTPConnection | None = None
        # Its own reference: a connection lets go of it while the last answer is read.
        self._socket: socket.socket | None = None
        self._aborted = False

    def ask(self, method: str, path: str, within_s: float | None = None) -> Answer:
        """Ask, and read the whole answer, within so many seconds. Raises NoAnswerError."""
        until = time.monotonic() + (WHOLE_S if within_s is None else within_s)
        try:
            was_kept = self._connection is not None
            try:
                return self._ask(method, path, until)
            except (http.client.RemoteDisconnected, ConnectionError):
                # Servers hang up on who says nothing for some seconds: that question was not heard.
                if not was_kept or self._aborted:
                    raise
                self.close()
                return self._ask(method, path, until)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            why = "it does not answer in time" if time.monotonic() >= until else _why(error, self._access.without_token)
            do = TRUST if isinstance(error, ssl.SSLCertVerificationError) else ""
            raise NoAnswerError(why, do) from error

    def close(self) -> None:
        """Hang up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._socket = None

    def abort(self) -> None:
        """Make an exchange that is going on fail at once, and all that are yet to come."""
        self._aborted = True
        sock = self._socket
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _ask(self, method: str, path: str, until: float) -> Answer:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect(until)
        headers = {"Accept-Encoding": "identity", "User-Agent": "inflight-inspector"}
        if self._access.token:
            headers["Authorization"] = f"Bearer {self._access.token}"
        connection.sock.settimeout(_left(until))
        asked = time.monotonic_ns()
        connection.response_class = _response_class(until)
        connection.request(method, self._address.prefix + path, headers=headers)
        response = connection.getresponse()
        pieces, cut = _pieces(response)
        received, epoch = _now()
        response.close()
        if cut or response.will_close:
            self.close()
        body = b"".join(pieces)
        encoding = (response.headers.get("Content-Encoding") or "identity").strip().lower()
        if encoding != "identity":
            body, broken = _unpacked(body, encoding)
            cut = cut or broken
        location = self._access.without_token(response.headers.get("Location") or "")
        return Answer(response.status, body, cut, received, epoch, asked, location)

    def _connect(self, until: float) -> http.client.HTTPConnection:
        where = self._address
        # It is given its socket, and never makes one, so that every step is within the time limit.
        connection = http.client.HTTPConnection("localhost" if where.scheme == "unix" else where.host, where.port or 80)
        connection.auto_open = 0
        sock = self._socket = _open(where, until)
        if self._aborted:
            sock.close()
            raise ConnectionAbortedError("it was told to end")
        if where.scheme == "https":
            context = self._access.certificates or ssl.create_default_context()
            sock.settimeout(_left(until, CONNECT_S))
            # It closes the one below when it fails.
            sock = self._socket = context.wrap_socket(sock, server_hostname=where.host)
        connection.sock = sock
        return connection


class _Timed(io.RawIOBase):
    """What a socket receives, until a moment: however slowly it drips, or however little at a time."""

    def __init__(self, sock: socket.socket, below: io.RawIOBase, until: float) -> None:
        self._sock, self._below, self._until = sock, below, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._until, SILENCE_S))
        return self._below.readinto(buffer)

    def close(self) -> None:
        if not self.closed:
            self._below.close()
        super().close()


def _response_class(until: float) -> type[http.client.HTTPResponse]:
    class Response(http.client.HTTPResponse):
        def __init__(self, sock: socket.socket, *args: Any, **more: Any) -> None:
            super().__init__(sock, *args, **more)
            self.fp: Any = io.BufferedReader(_Timed(sock, self.fp.detach(), until))

    return Response


def _now() -> tuple[int, int]:
    """This moment on both clocks, ns: of a few pairs the closest, so that an interruption between them does no harm."""
    pairs = []
    for _ in range(4):
        before = time.monotonic_ns()
        epoch = time.time_ns()
        after = time.monotonic_ns()
        pairs.append((after - before, (before + after) // 2, epoch))
    _, monotonic, epoch = min(pairs)
    return monotonic, epoch


def _pieces(response: http.client.HTTPResponse) -> tuple[list[bytes], bool]:
    """The body as far as it came and is read; and whether there is more."""
    pieces: list[bytes] = []
    size = 0
    while size <= MOST_BYTES:
        try:
            # read1 gives what has come; read would throw it away when the rest does not come.
            piece = response.read1(_PIECE)
        except (http.client.HTTPException, OSError, ValueError):
            return pieces, True
        if not piece:
            return pieces, response.length not in (None, 0)
        pieces.append(piece)
        size += len(piece)
    return pieces, True


def _unpacked(body: bytes, encoding: str) -> tuple[bytes, bool]:
    """A body in an encoding that nobody asked for, as far as it unpacks within bounds; and whether it was cut."""
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return b"", True
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    found: list[bytes] = []
    size = 0
    try:
        for at in range(0, len(body), _PIECE):
            found.append(unpacker.decompress(body[at : at + _PIECE], MOST_BYTES + 1 - size))
            size += len(found[-1])
            if size > MOST_BYTES or unpacker.eof:
                break
    except zlib.error:
        return b"".join(found), True
    return b"".join(found), not unpacker.eof


def _open(where: Address, until: float) -> socket.socket:
    """A connected socket; of several addresses of a host the first that takes it."""
    if where.scheme == "unix":
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        return _connected(sock, where.host, until)
    failed: OSError | None = None
    for family, kind, protocol, _, place in socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM):
        try:
            return _connected(socket.socket(family, kind, protocol), place, until)
        except OSError as error:
            failed = failed or error
    raise failed or OSError("it has no address")


def _connected(sock: socket.socket, place: Any, until: float) -> socket.socket:
    try:
        sock.settimeout(_left(until, CONNECT_S))
        sock.connect(place)
    except OSError:
        sock.close()
        raise
    return sock


def _left(until: float, most: float = SILENCE_S) -> float:
    """Seconds until then, `most` at most. Raises TimeoutError when they are over."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return min(left, most)


def _why(error: Exception, clean: Callable[[str], str]) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(error, socket.gaierror):
        return "there is no host of that name"
    if isinstance(error, UnicodeError):
        return "that is no name of a host"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({shown(clean(error.verify_message), _LONGEST_WHY)})"
    if isinstance(error, ssl.SSLError):
        return f"no secure connection: {shown(clean(error.reason or str(error)), _LONGEST_WHY)}"
    return shown(clean(getattr(error, "strerror", None) or str(error)) or type(error).__name__, _LONGEST_WHY)
