"""Layers: what TensorRT made of a network, layer by layer: what was fused, in which precision, moved and timed."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QSizePolicy,
    QSplitter,
    QVBoxLayout,
)

from inspector.trace.selection import Selection, Window
from inspector.trace.trace import Trace
from ui.export import Rows
from ui.layer_rows import LayerList, layer_rows
from ui.layer_words import details, headline
from ui.questions import Question
from ui.result_rows import Wanted
from ui.views.view import Host, State, View
from ui.widgets.figure import Figure
from ui.widgets.pattern_field import PatternField
from ui.widgets.table import TableView

_NOTHING = "No layers of an engine to show: this trace holds records."
_HOW = "Open what trtexec --exportLayerInfo and --exportProfile have written, both at once."
_FIGURES = ("Layers", "One inference", "Bytes moved", "Precision")


class Layers(View):
    """One engine at a time; with a second one beside it, its figures say how they differ."""

    ID: ClassVar[str] = "layers"
    TITLE: ClassVar[str] = "Layers"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.wanted = Wanted()
        self.engines = QComboBox()
        self.engines.setAccessibleName("Engine")
        self.engines.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.engines.setMinimumContentsLength(24)
        self.engines.activated.connect(lambda at: self.refresh())
        self.filter = PatternField("Find in texts (regular expression)", "Find layers")
        self.filter.wanted.connect(self._pattern_wanted)
        self.figures = [Figure(host.theme, name) for name in _FIGURES]
        self.sums = QLabel()
        self.about = QPlainTextEdit()
        self.about.setReadOnly(True)
        self.about.setAccessibleName("The layer")
        self.about.setFrameShape(QFrame.Shape.NoFrame)
        self.about.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.table = TableView(host.theme, "Layers")
        self.table.sort_asked.connect(self._sort_asked)
        self.table.current_changed.connect(self._current)
        self._lay_out()

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """The layers of the chosen engine."""
        at = self.engines.currentIndex()
        if not 0 <= at < len(trace.layers):
            return None
        return Question(layer_rows, (trace, at, self.wanted), (id(trace), at, self.wanted))

    def show_answer(self, answer: LayerList) -> None:
        """Fill the figures and the table."""
        for figure, said in zip(self.figures, headline(answer.engines, answer.at), strict=True):
            figure.say(said.value, said.notes, said.basis, tip=said.tip)
        self.about.clear()
        self.table.set_content(answer, self.wanted.sort, self.wanted.descending, (answer.at, self.wanted))
        whole = len(answer.of.table)
        shown = f"{len(answer):,} of {whole:,}" if self.wanted.pattern else f"{whole:,}"
        engine = answer.of.engine
        words = [f"{shown} layer{'s' if whole != 1 else ''}"]
        words.append("times measured by trtexec" if engine.is_timed else "no profile, so no times")
        words.append("bytes modelled from shapes and formats" if engine.is_detailed else "no shapes, so no bytes")
        self.sums.setText(", ".join(words))
        if len(answer):
            self._current(max(self.table.currentIndex().row(), 0))

    def rows_for_copy(self) -> Rows | None:
        """The rows that are selected, all of them where there is at most one."""
        return self.table.rows(only_selected=len(self.table.selected_rows()) > 1)

    def take_focus(self) -> None:
        """To the table."""
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    def retheme(self) -> None:
        """Row heights and field widths."""
        self.table.retheme()
        for figure in self.figures:
            figure.retheme()
        self.filter.setMinimumWidth(self.theme.px(160))
        self.filter.setMaximumWidth(self.theme.px(360))
        self.about.setFont(self.theme.font())
        self.about.document().setDocumentMargin(self.theme.px(8))
        self.update()

    def _trace_changed(self) -> None:
        trace = self.session.trace
        engines = trace.layers if trace is not None else ()
        self.wanted = Wanted(pattern=self.wanted.pattern)
        self.engines.clear()
        self.engines.addItems([engine.title for engine in engines])
        self.engines.setVisible(len(engines) > 1)
        super()._trace_changed()
        if trace is not None and not engines:
            self._say(State.NO_DATA, _NOTHING, _HOW)

    def _current(self, row: int) -> None:
        content = self.table.content
        if isinstance(content, LayerList) and 0 <= row < len(content):
            self.about.setPlainText(details(content.layer(row)))

    def _sort_asked(self, key: str, descending: bool) -> None:
        self.wanted = replace(self.wanted, sort=key, descending=descending)
        self.refresh()

    def _pattern_wanted(self, text: str) -> None:
        self.wanted = replace(self.wanted, pattern=text)
        self.refresh()

    def _lay_out(self) -> None:
        px = self.theme.px
        self.paint_background()
        self.sums.setObjectName("small")
        self.sums.setTextFormat(Qt.TextFormat.PlainText)
        self.sums.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        figures = QGridLayout()
        figures.setContentsMargins(px(10), px(8), px(10), 0)
        figures.setHorizontalSpacing(px(20))
        for at, figure in enumerate(self.figures):
            figures.addWidget(figure, 0, at)
            figures.setColumnStretch(at, 1)
        tools = QHBoxLayout()
        tools.setContentsMargins(px(8), px(4), px(8), 0)
        tools.setSpacing(px(8))
        tools.addWidget(self.engines)
        tools.addWidget(self.filter, 1)
        tools.addWidget(self.sums, 2)
        self.sums.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        parts = QSplitter(Qt.Orientation.Horizontal)
        parts.addWidget(self.table)
        parts.addWidget(self.about)
        parts.setStretchFactor(0, 3)
        parts.setStretchFactor(1, 1)
        parts.setChildrenCollapsible(False)
        layout = QVBoxLayout(self.content)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(px(4))
        layout.addLayout(figures)
        layout.addLayout(tools)
        layout.addWidget(parts, 1)
        self.retheme()
