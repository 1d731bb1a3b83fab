"""How a server is spoken to in confidence: a token, and whose certificates are taken for true.

The token stands in the environment or in a file, never in a command line, which every user of the machine can read, and
never in a recording.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inspector.errors import Unreadable, Usage
from probes.server_http.redaction import without

TOKEN = "INFLIGHT_TOKEN"
"""Names the token in the environment."""
_MOST_BYTES = 16 << 10


@dataclass(frozen=True)
class Access:
    """A token for `Authorization: Bearer`, '' for none, and how certificates are checked; None: as the system does."""

    token: str = field(default="", repr=False)
    certificates: ssl.SSLContext | None = None

    def without_token(self, text: str) -> str:
        """`text` with the token out of it: some servers repeat what they are told.

        Of what is decoded, and before it is cut: what is left of a token is no less a secret.
        """
        return without(self.token, text)


def access(environment: Mapping[str, str], token_file: str | None, ca: str | None, insecure: bool) -> Access:
    """From options and environment. Raises Usage, and Unreadable for files that cannot be read."""
    token, of = environment.get(TOKEN, "").strip(), TOKEN
    if token_file is not None:
        token, of = _text(token_file).strip(), token_file
        if not token:
            raise Usage(f"{token_file} holds no token", "it is empty", "write the token into it, and nothing else")
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise Usage(f"the token in {of} is none", "it holds spaces, line ends or odd characters", "see what was copied")
    if insecure and ca is not None:
        raise Usage("--insecure and --ca", "they say two things", "name one of them")
    return Access(token, _certificates(ca, insecure))


def _text(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise Unreadable(f"cannot read the token in {path}", error.strerror or str(error), "check the path") from error


def _certificates(ca: str | None, insecure: bool) -> ssl.SSLContext | None:
    if ca is None and not insecure:
        return None
    context = ssl.create_default_context()
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    place = Path(ca or "")
    try:
        if place.is_dir():
            context.load_verify_locations(capath=place)
        else:
            context.load_verify_locations(cafile=place)
    except ssl.SSLError as error:
        raise Unreadable(f"no certificates in {ca}", error.reason or str(error), "name a file in PEM format") from error
    except OSError as error:
        raise Unreadable(f"cannot read {ca}", error.strerror or str(error), "check the path") from error
    return context
