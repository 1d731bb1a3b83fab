"""Where a server is, from what a user types."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from inspector.errors import Usage

# What people copy from a browser or from a scraper's settings: the server is meant.
_PATHS = ("/prometheus/metrics", "/metrics", "/perf_metrics", "/kv_cache_events", "/server_info", "/version", "/health")
_MOST_DIGITS = 10


@dataclass(frozen=True)
class Address:
    """Scheme http or https with host, port and what stands before each path; or unix, and `host` is a socket's file."""

    scheme: str
    host: str
    port: int
    prefix: str

    def __str__(self) -> str:
        if self.scheme == "unix":
            return f"unix:{self.host}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"

    @property
    def is_here(self) -> bool:
        """Whether it is this machine, or a tunnel that begins on it."""
        return self.scheme == "unix" or self.host in ("localhost", "::1") or self.host.startswith("127.")


def process_number(text: str) -> int | None:
    """The process that `text` names; None where it names none. Raises Usage for digits that number no process."""
    if not text.isnumeric():
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise Usage(f"{text[:40]!r} is no number of a process", "", "it is like 4711")
    return int(text)


def address(text: str) -> Address:
    """From an URL, HOST:PORT, or unix:FILE. Raises Usage."""
    if text.startswith("unix:") and len(text) > len("unix:"):
        return Address("unix", text.removeprefix("unix:"), 0, "")
    wrong = Usage(f"{text[:200]!r} is no address of a server", "", "it is like http://localhost:8000")
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
        digits = parts.netloc.rpartition("]")[2].rpartition(":")
    except ValueError as error:
        raise wrong from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise wrong
    if any(letter.isspace() or not letter.isprintable() for letter in text):
        raise wrong
    if digits[1] and not (digits[2].isascii() and digits[2].isdigit() and len(digits[2]) <= 5):
        raise wrong
    if parts.username or parts.password:
        raise Usage("an address with a password in it", "it would stand in the recording", "leave the password out")
    if parts.query:
        why = "what follows ? may be there to let you in, and would stand in the recording"
        raise Usage("an address with a query in it", why, "leave it out; a token goes into --token-file")
    usual = 443 if parts.scheme == "https" else 80
    prefix = parts.path.rstrip("/")
    prefix = next((prefix.removesuffix(path) for path in _PATHS if prefix.endswith(path)), prefix)
    return Address(parts.scheme, parts.hostname, port or usual, quote(prefix, safe="/%~:@!$&'()*+,;="))
