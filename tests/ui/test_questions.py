"""Questions and their answers: who is shown what, on which thread, and when not."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QThread
from pytestqt.qtbot import QtBot

from inspector.errors import Cancelled, Unreadable
from inspector.readers.reader import Progress, Report
from ui.collector import Collector
from ui.questions import Asker, Failure, Question


class Listener:
    """What an asker's view would be: keeps what it is told, and on which thread."""

    def __init__(self) -> None:
        self.answers: list[object] = []
        self.failures: list[Failure] = []
        self.states: list[object] = []
        self.threads: set[QThread] = set()

    def show(self, answer: object) -> None:
        self.threads.add(QThread.currentThread())
        self.answers.append(answer)

    def fail(self, failure: Failure) -> None:
        self.failures.append(failure)

    def ask(self, asker: Asker, question: Question) -> None:
        asker.ask(self, question, self.show, self.fail, self.states.append)


@pytest.fixture
def asker(qtbot: QtBot) -> Iterator[Asker]:
    made = Asker()
    yield made
    assert made.close()
    made.deleteLater()


def test_the_newest_question_wins_and_answers_come_on_this_thread(qtbot: QtBot, asker: Asker) -> None:
    started, gate, listener = threading.Event(), threading.Event(), Listener()
    ran: list[int] = []

    def answer(number: int) -> int:
        assert threading.current_thread() is not threading.main_thread()
        started.set()
        gate.wait(10)
        ran.append(number)
        return number

    for number in range(5):
        listener.ask(asker, Question(answer, (number,), number))
        assert started.wait(10)
    gate.set()
    qtbot.waitUntil(lambda: not asker.busy, timeout=10_000)
    # The first was running, the last was the newest that waited; nobody ever asked for those between.
    assert ran == [0, 4]
    assert listener.answers == [0, 4]
    assert listener.threads == {QThread.currentThread()}


def test_two_views_do_not_wait_for_each_other(qtbot: QtBot, asker: Asker) -> None:
    gate, slow, quick = threading.Event(), Listener(), Listener()
    slow.ask(asker, Question(gate.wait, (10,), 0))
    quick.ask(asker, Question(int, ("7",), 0))
    qtbot.waitUntil(lambda: quick.answers == [7], timeout=10_000)
    assert slow.answers == []
    gate.set()
    qtbot.waitUntil(lambda: slow.answers == [True], timeout=10_000)


def test_what_is_forgotten_is_cancelled_and_never_shown(qtbot: QtBot, asker: Asker) -> None:
    started, ended, listener = threading.Event(), threading.Event(), Listener()

    def read(report: Report) -> None:
        started.set()
        try:
            while True:
                report(Progress("reading"))
        except Cancelled:
            ended.set()
            raise

    listener.ask(asker, Question(read, (), 0, reports=True))
    assert started.wait(10)
    asker.forget(listener)
    assert ended.wait(10)
    assert asker.close()
    qtbot.wait(1)
    assert listener.answers == []
    assert listener.failures == []


def test_progress_is_told_to_who_asked(qtbot: QtBot, asker: Asker) -> None:
    listener = Listener()

    def read(report: Report) -> str:
        report(Progress("reading", 1, 2, 3))
        return "read"

    listener.ask(asker, Question(read, (), 0, reports=True))
    qtbot.waitUntil(lambda: listener.answers == ["read"], timeout=10_000)
    assert listener.states == [Progress("reading", 1, 2, 3)]


@pytest.mark.parametrize("synchronous", [True, False])
def test_a_fault_of_ours_has_a_report_a_users_error_one_line(qtbot: QtBot, synchronous: bool) -> None:
    asker = Asker(synchronous=synchronous)

    def wrong() -> None:
        raise ZeroDivisionError("by nought")

    def unreadable() -> None:
        raise Unreadable("cannot read x", "it is empty", "record it again")

    for function in (wrong, unreadable):
        listener = Listener()
        listener.ask(asker, Question(function, (), 0))
        qtbot.waitUntil(lambda listener=listener: bool(listener.failures), timeout=10_000)
        failure = listener.failures[0]
        if function is wrong:
            assert failure.line == "ZeroDivisionError: by nought"
            assert "Traceback" in failure.report
            assert "in wrong" in failure.report
        else:
            assert failure == Failure("cannot read x: it is empty. Record it again")
    assert asker.close()
    asker.deleteLater()


def test_a_failure_that_nobody_waits_for_is_not_shown(qtbot: QtBot, asker: Asker) -> None:
    gate, listener = threading.Event(), Listener()

    def fail() -> None:
        gate.wait(10)
        raise ValueError

    listener.ask(asker, Question(fail, (), 0))
    listener.ask(asker, Question(str, (1,), 1))
    gate.set()
    qtbot.waitUntil(lambda: listener.answers == ["1"], timeout=10_000)
    assert listener.failures == []


def test_the_collector_runs_here_and_nowhere_else(qtbot: QtBot) -> None:
    collector = Collector()
    try:
        assert not gc.isenabled()
        cycles: list[list[object]] = []
        for _ in range(gc.get_threshold()[0] + 50):
            cycles.append([])
            cycles[-1].append(cycles[-1])
        assert collector.collect() >= 0
        assert gc.get_count()[0] <= gc.get_threshold()[0]
    finally:
        collector.stop()
        collector.deleteLater()
    assert gc.isenabled()
