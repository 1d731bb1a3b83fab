"""How work leaves the GUI thread and comes back: a question goes into the pool, its answer returns by one signal.

A question is a pure function over immutable values. Workers see no QObject: what an answer is for stands in a
dictionary that only the GUI thread touches.
"""

from __future__ import annotations

import logging
import platform
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QObject, Qt, QThreadPool, QTimer, Signal

from inspector import __version__
from inspector.errors import Cancelled, InspectorError
from ui.priority import step_back

THREADS = 2
logger = logging.getLogger(__name__)
_PROGRESS_S = 0.05


@dataclass(frozen=True)
class Question:
    """`function(*args)`, asked once per `key`: equal keys have equal answers.

    With `reports` the function also gets the keyword `report`, to be called now and then with how far it has got; that
    call raises Cancelled once the answer is no longer wanted. A `prompt` one is always short: it has a thread that no
    analysis of a whole trace holds up.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    key: Hashable
    reports: bool = False
    prompt: bool = False


@dataclass(frozen=True)
class Failure:
    """Why there is no answer: one `line` for people; `report` is what to hand on where the program is at fault."""

    line: str
    report: str = ""


Show = Callable[[Any], None]
Fail = Callable[[Failure], None]


@dataclass(eq=False)
class _Task:
    """One run of a question. Holds nothing of Qt: it may die in a worker."""

    who: Hashable
    question: Question
    cancelled: bool = False
    answer: Any = None
    failure: Failure | None = None
    reported: float = field(default=0.0)


@dataclass(eq=False)
class _Asked:
    """What the GUI thread knows of one asker."""

    show: Show
    fail: Fail
    progress: Show | None
    running: _Task
    waiting: _Task | None = None


class Asker(QObject):
    """Runs questions: for each asker one at a time, the newest next, in a pool of two threads and one for prompt ones.

    A finished answer is shown even where a newer question waits (so a view that is being panned keeps moving), a
    failure of a question that nobody waits for any more is not. With `synchronous` everything happens inside `ask`.
    """

    busy_changed = Signal()
    _done = Signal(object)
    _progressed = Signal(object, object)

    def __init__(self, synchronous: bool = False, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.synchronous = synchronous
        self._asked: dict[Hashable, _Asked] = {}
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(THREADS)
        self._prompt = QThreadPool(self)
        self._prompt.setMaxThreadCount(1)
        # One at a time, so that what one of them changes is painted before the next is shown: those that come together
        # would else hold up keys and the pointer together.
        self._ready: deque[_Task] = deque()
        self._showing = QTimer(self)
        self._showing.setInterval(0)
        self._showing.timeout.connect(self._show_next)
        self._done.connect(self._queue, Qt.ConnectionType.QueuedConnection)
        self._progressed.connect(self._moved, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        """Whether an answer is outstanding."""
        return bool(self._asked)

    def ask(self, who: Hashable, question: Question, show: Show, fail: Fail, progress: Show | None = None) -> None:
        """Have `question` answered for `who`; `show(answer)` or `fail(failure)` is called on this thread, later."""
        task = _Task(who, question)
        if self.synchronous:
            self._asked[who] = _Asked(show, fail, progress, task)
            self._run(task)
            return
        asked = self._asked.get(who)
        if asked is None:
            self._asked[who] = _Asked(show, fail, progress, task)
            self._start(task)
            self.busy_changed.emit()
            return
        asked.show, asked.fail, asked.progress = show, fail, progress
        asked.running.cancelled = True
        asked.waiting = task

    def forget(self, who: Hashable) -> None:
        """Cancel what `who` asked; no answer to it will be shown."""
        asked = self._asked.pop(who, None)
        if asked is not None:
            asked.running.cancelled = True
            self.busy_changed.emit()

    def close(self, wait_ms: int = 3000) -> bool:
        """Cancel everything and wait for the workers; False when one did not stop in `wait_ms`."""
        for who in list(self._asked):
            self.forget(who)
        deadline = time.monotonic() + wait_ms / 1000
        done = self._pool.waitForDone(wait_ms)
        return self._prompt.waitForDone(max(round((deadline - time.monotonic()) * 1000), 0)) and done

    def _start(self, task: _Task) -> None:
        pool = self._prompt if task.question.prompt else self._pool
        pool.start(lambda: self._work(task))

    def _work(self, task: _Task) -> None:
        step_back()
        self._run(task)

    def _run(self, task: _Task) -> None:
        question = task.question
        keywords = {"report": lambda state: self._report(task, state)} if question.reports else {}
        try:
            task.answer = None if task.cancelled else question.function(*question.args, **keywords)
        except Cancelled:
            task.cancelled = True
        except InspectorError as error:
            task.failure = Failure(str(error))
        except Exception as error:
            logger.exception("a question could not be answered")
            task.failure = Failure(f"{type(error).__name__}: {error}", _report_of(question))
        if self.synchronous:
            self._arrived(task)
        else:
            self._done.emit(task)

    def _report(self, task: _Task, state: object) -> None:
        if task.cancelled:
            raise Cancelled
        now = time.monotonic()
        if now - task.reported >= _PROGRESS_S:
            task.reported = now
            if self.synchronous:
                self._moved(task, state)
            else:
                self._progressed.emit(task, state)

    def _moved(self, task: _Task, state: object) -> None:
        asked = self._asked.get(task.who)
        if asked is not None and asked.running is task and asked.progress is not None:
            asked.progress(state)

    def _queue(self, task: _Task) -> None:
        self._ready.append(task)
        if not self._showing.isActive():
            self._showing.start()

    def _show_next(self) -> None:
        task = self._ready.popleft()
        if not self._ready:
            self._showing.stop()
        self._arrived(task)

    def _arrived(self, task: _Task) -> None:
        asked = self._asked.get(task.who)
        if asked is None or asked.running is not task:
            return
        if asked.waiting is not None:
            asked.running, asked.waiting = asked.waiting, None
            self._start(asked.running)
            newest = False
        else:
            del self._asked[task.who]
            newest = True
        if task.failure is not None:
            if newest:
                asked.fail(task.failure)
        elif newest or task.answer is not None:
            asked.show(task.answer)
        if newest:
            self.busy_changed.emit()


def _report_of(question: Question) -> str:
    name = getattr(question.function, "__qualname__", repr(question.function))
    return (
        f"Inflight Inspector {__version__}, Python {platform.python_version()}, {platform.system()} "
        f"{platform.machine()}\nin {question.function.__module__}.{name}\n\n{traceback.format_exc()}"
    )
