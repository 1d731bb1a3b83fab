"""What every view has in common: it states a question, the answer is brought, and it paints.

A view has no thread, timer, lock or file access, and knows no other view: what it shows to the others it puts into the
session. A subclass sets ID, TITLE and NEEDS, builds its widgets into `self.content`, and gives `question` and
`show_answer`; the states (no trace, waiting, no data, error, answer) are kept here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QStackedLayout, QWidget

from inspector.trace.selection import Selection, Window
from ui.export import Rows
from ui.pace import Pace
from ui.questions import Asker, Failure, Question
from ui.run.child import Child
from ui.session import Session
from ui.settings import SettingsFile
from ui.theme import Theme
from ui.widgets.message import Message

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


@dataclass(frozen=True)
class Host:
    """What a view may lean on."""

    session: Session
    asker: Asker
    theme: Theme
    settings: SettingsFile
    child: Child = field(default_factory=Child)


_LEAST_TALL = 190


class State(Enum):
    """What a view shows."""

    NO_TRACE = "no trace"
    WAITING = "waiting"
    NO_DATA = "no data"
    ERROR = "error"
    ANSWER = "answer"


@dataclass(frozen=True)
class Need:
    """Rows in at least one of `tables`; `sentence` says what is not shown without them."""

    tables: tuple[str, ...]
    sentence: str


class View(QWidget):
    """Base of all views. Build the widgets in `__init__`, as children of `self.content`, after `super().__init__`.

    `ID` names it in settings, actions and exports; `TITLE` is what people read. Views are asked when shown and whenever
    trace, selection or visible window change; a question with the key of the one before is not asked again.
    """

    ID: ClassVar[str] = ""
    TITLE: ClassVar[str] = ""
    NEEDS: ClassVar[tuple[Need, ...]] = ()
    IN_ROUNDS: ClassVar[bool] = False
    """Whether it needs analyses that others need too, so that all had better ask of the same generation of a run."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.host = host
        self.session, self.theme = host.session, host.theme
        self.state = State.NO_TRACE
        self._asked: Question | None = None
        self._pace = Pace()
        self.setObjectName(self.ID)
        self.setAccessibleName(self.TITLE)
        self.content = QWidget(self)
        self.message = Message(host.theme, self)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.content)
        self._stack.addWidget(self.message)
        self.session.trace_changed.connect(self._trace_changed)
        self.session.grown.connect(self._grown)
        self.session.selection_changed.connect(self.refresh)
        self.session.window_changed.connect(self.refresh)
        self.theme.changed.connect(self.retheme)
        self._say(State.NO_TRACE, "No trace is open", "Open one with Ctrl+O, or drop a file here.")

    def question(self, trace: Trace, selection: Selection, window: Window) -> Question | None:
        """What this view wants to know now; cheap and pure. None: nothing but what it already has."""
        raise NotImplementedError

    def show_answer(self, answer: Any) -> None:
        """Paint what the question's function returned."""
        raise NotImplementedError

    def retheme(self) -> None:
        """The theme or the type size has changed. Style sheet and default font are in force already."""
        self.update()

    def rows_for_copy(self) -> Rows | None:
        """The numbers behind the picture, those selected where rows can be; None when there are none to give."""
        return None

    def picture(self) -> QWidget:
        """The widget that is exported as a picture."""
        return self.content

    def begin(self) -> None:
        """Catch up with a trace that was there before the view."""
        self._trace_changed()

    def minimumSizeHint(self) -> QSize:
        """Docks are as tall as the tallest of their tabs must be: no view may take the timeline's room by that."""
        hint = super().minimumSizeHint()
        return QSize(hint.width(), min(hint.height(), _LEAST_TALL))

    def take_focus(self) -> None:
        """Give the focus to the first widget of the view that takes it by the keyboard."""
        for widget in self.findChildren(QWidget):
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisibleTo(self) and widget.isEnabled():
                widget.setFocus(Qt.FocusReason.OtherFocusReason)
                return
        # Else keys would go on to a view that is out of sight.
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def refresh(self) -> None:
        """Ask, if there is something new to ask. Called by the session's signals; call it when an option changed."""
        trace = self.session.trace
        if trace is None or not self.isVisible() or self.state is State.NO_DATA:
            return
        if self.session.is_advancing and self.session.live.is_on and not self._is_due(trace):
            return
        question = self.question(trace, self.session.selection, self.session.window)
        if question is None or (self._asked is not None and question.key == self._asked.key):
            return
        self._asked = question
        if self.state is not State.ANSWER:
            self._say(State.WAITING, "Working…")
        self._begin()
        self.host.asker.ask(self, question, self._answered, self._failed)

    def _is_due(self, trace: Trace) -> bool:
        return self.session.rounds.is_due(trace.generation) if self.IN_ROUNDS else self._pace.is_due(self)

    def _begin(self) -> None:
        if self.IN_ROUNDS:
            self.session.rounds.begin(self)
        else:
            self._pace.begin(self)

    def _end(self) -> None:
        self.session.rounds.end(self)
        self._pace.end(self, self._asked is None or not self._asked.prompt)

    def showEvent(self, event: QShowEvent) -> None:
        """Ask what was not asked while nobody looked."""
        super().showEvent(event)
        self.refresh()

    def _grown(self) -> None:
        """The trace has gone on: an answer stays until the new one is there."""
        if self.state in (State.NO_DATA, State.ERROR, State.NO_TRACE):
            self._trace_changed()
        else:
            self.refresh()

    def _trace_changed(self) -> None:
        self.host.asker.forget(self)
        self._pace.forget()
        self.session.rounds.end(self)
        self._asked = None
        trace = self.session.trace
        if trace is None:
            self._say(State.NO_TRACE, "No trace is open", "Open one with Ctrl+O, or drop a file here.")
            return
        for need in self.NEEDS:
            if not any(len(trace[table]) for table in need.tables):
                # The first table is the one that matters most; what it takes to have the others is another matter.
                how = next((trace.info.missing[table] for table in need.tables if table in trace.info.missing), "")
                how = how[:1].upper() + how[1:]
                # Of a run too, where it is known that they will not come.
                if how or not self.session.live.is_on:
                    self._say(State.NO_DATA, need.sentence, how)
                else:
                    so_far = f"So far {need.sentence[:1].lower()}{need.sentence[1:]}"
                    self._say(State.NO_DATA, "Waiting for the first records", so_far)
                return
        self._say(State.WAITING, "Working…")
        self.refresh()

    def _answered(self, answer: Any) -> None:
        self._end()
        self.show_answer(answer)
        self.state = State.ANSWER
        self._stack.setCurrentWidget(self.content)

    def _failed(self, failure: Failure) -> None:
        self._end()
        headline = "This could not be worked out" if failure.report else failure.line
        self._say(State.ERROR, headline, failure.line if failure.report else "", failure.report)

    def _say(self, state: State, headline: str, sentence: str = "", report: str = "") -> None:
        self.state = state
        self.message.say(headline, sentence, report)
        self._stack.setCurrentWidget(self.message)

    def paint_background(self) -> None:
        """Give the content the surface's colour."""
        self.content.setObjectName("panel")
        self.content.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
