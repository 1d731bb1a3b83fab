"""What Ctrl+L and Ctrl+T ask: a command to record, a server or a process to attach to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from inspector.errors import InspectorError
from ui.run import launch
from ui.run.launch import Launch
from ui.run.nsys_fields import NsysFields
from ui.run.trust_fields import CertificateField, TokenField
from ui.theme import GRID, Theme

_TAKES = (
    "What a server has to tell at /metrics, /kv_cache_events and /perf_metrics is given out once: while this is "
    "attached, other readers of these (a dashboard, a router) miss the records that are read here."
)


class _Dialog(QDialog):
    """Fields, what is wrong with them, and two buttons. `launch` is what to start, once accepted."""

    def __init__(self, theme: Theme, title: str, parent: QWidget, begin: str) -> None:
        super().__init__(parent)
        self.launch: Launch | None = None
        self._theme = theme
        self.setWindowTitle(title)
        self.setMinimumWidth(theme.px(560))
        self.form = QFormLayout()
        self.form.setHorizontalSpacing(theme.px(2 * GRID))
        self.form.setVerticalSpacing(theme.px(GRID))
        self.form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.name = QLineEdit()
        self.name.setAccessibleName("Recording")
        self.name.setPlaceholderText("named by what runs and the time")
        self.name.setToolTip(f"A name, kept in {launch.recordings()}, or a path")
        self._wrong = QLabel()
        self._wrong.setObjectName("wrong")
        self._wrong.setWordWrap(True)
        self._wrong.hide()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.begin = buttons.addButton(begin, QDialogButtonBox.ButtonRole.AcceptRole)
        self.begin.setObjectName("primary")
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[theme.px(3 * GRID)] * 4)
        layout.setSpacing(theme.px(2 * GRID))
        layout.addLayout(self.form)
        self.notes = QVBoxLayout()
        self.notes.setSpacing(theme.px(GRID))
        layout.addLayout(self.notes)
        layout.addWidget(self._wrong)
        layout.addStretch(1)
        layout.addWidget(buttons)

    def accept(self) -> None:
        """End with what was asked for; stay where it cannot be."""
        try:
            self.launch = self.chosen()
        except InspectorError as error:
            self._wrong.setText(str(error))
            self._wrong.show()
            return
        super().accept()

    def chosen(self) -> Launch:
        """What the fields ask for. Raises InspectorError."""
        raise NotImplementedError

    def _line(self, name: str, history: Sequence[str], example: str) -> QComboBox:
        box = QComboBox()
        box.setEditable(True)
        box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        box.addItems(list(history))
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setAccessibleName(name)
        line = box.lineEdit()
        assert line is not None
        line.setPlaceholderText(example)
        line.setAccessibleName(name)
        line.selectAll()
        return box

    def _note(self, text: str, style: str = "small") -> QLabel:
        label = QLabel(text)
        label.setObjectName(style)
        label.setWordWrap(True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return label


class LaunchDialog(_Dialog):
    """A command line, where it runs, what its recording is called. `history` are pairs of line and folder."""

    def __init__(self, theme: Theme, history: Sequence[tuple[str, str]], parent: QWidget) -> None:
        super().__init__(theme, "Launch and record", parent, "Launch")
        self._history = list(history)
        self.line = self._line("Command line", [line for line, _ in history], "trtllm-serve MODEL --port 8000")
        self.folder = QLineEdit(history[0][1] if history else str(Path.home()))
        self.folder.setAccessibleName("Working folder")
        browse = QPushButton("Choose…")
        browse.setAccessibleName("Choose working folder")
        browse.setAutoDefault(False)
        browse.clicked.connect(self._browse)
        beside = QHBoxLayout()
        beside.setSpacing(theme.px(GRID))
        beside.addWidget(self.folder, 1)
        beside.addWidget(browse)
        self.form.addRow("Command line", self.line)
        self.form.addRow("Working folder", beside)
        self.form.addRow("Recording", self.name)
        self.nsys = NsysFields(theme)
        self.form.addRow("Nsight Systems", self.nsys)
        self.notes.addWidget(
            self._note(
                "Split into words as a shell would; nothing is expanded. The command runs as you, with the probes "
                "named in its environment."
            ),
        )
        self.line.activated.connect(self._again)
        self.line.setFocus()

    def chosen(self) -> Launch:
        """The recorder of that command."""
        folder = self.folder.text().strip()
        directory = Path(folder).expanduser() if folder else None
        recording = launch.named_recording(self.name.text())
        return launch.command(self.line.currentText(), directory, recording, self.nsys.argv())

    @property
    def entry(self) -> tuple[str, str]:
        """What to remember."""
        return self.line.currentText().strip(), self.folder.text().strip()

    def _again(self, at: int) -> None:
        if 0 <= at < len(self._history):
            self.folder.setText(self._history[at][1])

    def _browse(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Working folder", self.folder.text())
        if chosen:
            self.folder.setText(chosen)


class AttachDialog(_Dialog):
    """The address of a server, or the number of a process, and what lets us in; with what attaching takes away.

    `history` are pairs of a target and the certificate authority that was named with it.
    """

    def __init__(self, theme: Theme, history: Sequence[tuple[str, str]], parent: QWidget) -> None:
        super().__init__(theme, "Attach", parent, "Attach")
        self._history = list(history)
        targets = [target for target, _ in history]
        self.target = self._line("Address or process", targets, "http://localhost:8000, or a process number")
        self.token = TokenField(theme)
        self.certificate = CertificateField(theme, history[0][1] if history else "")
        self.form.addRow("Address or process", self.target)
        self.form.addRow("Token", self.token)
        self.form.addRow("Certificate authority", self.certificate)
        self.form.addRow("Recording", self.name)
        self.notes.addWidget(self._note(_TAKES, "doubt"))
        self.notes.addWidget(
            self._note(
                "Only what the server tells over HTTP is seen: iterations, requests, cached prefixes and memory, "
                "no kernels. A process is looked up by the port that it listens at."
            ),
        )
        self.target.activated.connect(self._again)
        self.target.setFocus()

    def chosen(self) -> Launch:
        """The recorder of that server."""
        certificate, environment = self.certificate.path(), self.token.environment()
        recording = launch.named_recording(self.name.text())
        return launch.attach(self.target.currentText(), recording, certificate, environment)

    @property
    def entry(self) -> tuple[str, str]:
        """What to remember: never the token."""
        return self.target.currentText().strip(), self.certificate.path()

    def _again(self, at: int) -> None:
        if 0 <= at < len(self._history):
            self.certificate.line.setText(self._history[at][1])
