"""What lets a recorder in at a server: a bearer token, and whose certificates are taken for true.

The token goes into the recorder's environment, as the command line has it too: not into its arguments, which every user
of the machine can read, nor into a recording, the settings or a list of what was attached to last.
"""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QPushButton, QWidget

from inspector.errors import Usage
from ui.theme import GRID, Theme

TOKEN = "INFLIGHT_TOKEN"
"""Names the token in the environment of `inflight attach`."""


class TokenField(QWidget):
    """A token behind dots, and a button that shows it for as long as it is pressed in."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.line, self.shown = QLineEdit(), QPushButton("Show")
        self.line.setEchoMode(QLineEdit.EchoMode.Password)
        self.line.setAccessibleName("Token")
        given = f"as {TOKEN} has it" if os.environ.get(TOKEN, "").strip() else "none"
        self.line.setPlaceholderText(given)
        self.line.setToolTip("Sent as Authorization: Bearer. It is kept nowhere: neither in the recording nor here")
        self.shown.setCheckable(True)
        self.shown.setAutoDefault(False)
        self.shown.setAccessibleName("Show token")
        self.shown.toggled.connect(self._show)
        _beside(self, theme, self.line, self.shown)

    def environment(self) -> tuple[tuple[str, str], ...]:
        """What is set for the recorder; nothing where nothing was typed. Raises Usage."""
        token = self.line.text().strip()
        if not token:
            return ()
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise Usage("this is no token", "it holds spaces or odd characters", "see what was copied")
        return ((TOKEN, token),)

    def _show(self, on: bool) -> None:
        self.line.setEchoMode(QLineEdit.EchoMode.Normal if on else QLineEdit.EchoMode.Password)


class CertificateField(QWidget):
    """The file of an authority whose certificates are trusted besides the system's."""

    def __init__(self, theme: Theme, path: str) -> None:
        super().__init__()
        self.line, browse = QLineEdit(path), QPushButton("Choose…")
        self.line.setAccessibleName("Certificate authority")
        self.line.setPlaceholderText("those that the system trusts")
        self.line.setToolTip(
            "A file in PEM format, of the authority that signed the server's certificate; for https://"
        )
        browse.setAutoDefault(False)
        browse.setAccessibleName("Choose certificate authority")
        browse.clicked.connect(self._browse)
        _beside(self, theme, self.line, browse)

    def path(self) -> str:
        """The whole path, '' for none. Raises Usage where there is no such file."""
        text = self.line.text().strip()
        if not text:
            return ""
        path = Path(text).expanduser().absolute()
        if not path.exists():
            raise Usage(f"there is no {path}", "", "choose a file in PEM format, or leave it to the system")
        return str(path)

    def _browse(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(
            self, "Certificate authority", self.line.text(), "Certificates (*.pem *.crt *.cer);;All files (*)"
        )
        if chosen:
            self.line.setText(chosen)


def _beside(widget: QWidget, theme: Theme, line: QLineEdit, button: QPushButton) -> None:
    layout = QHBoxLayout(widget)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(theme.px(GRID))
    layout.addWidget(line, 1)
    layout.addWidget(button)
