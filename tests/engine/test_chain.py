"""Processes in a row: order, volume, and the end of any of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from probes.workloads.engine import chain as chain_module
from probes.workloads.engine.chain import Chain, LinkEnded
from tests.waiting import is_alive, until

_ADDS = """
import sys
from probes.workloads.engine.chain import serve
number = int(sys.argv[1])
def handle(message):
    if message == number:
        raise ValueError("told to")
    return (*message, number)
serve(handle, int(sys.argv[2]), int(sys.argv[3]))
"""
_COMMAND = (sys.executable, "-I", "-c", _ADDS)


@pytest.fixture
def chain() -> Iterator[Chain]:
    made = Chain(_COMMAND, 3, "link")
    yield made
    made.close()


def _wait_until_gone(pids: tuple[int, ...]) -> None:
    until(lambda: not any(is_alive(pid) for pid in pids), "gone", at_most=10)


def test_messages_pass_all_links_in_order(chain: Chain) -> None:
    for at in range(20):
        chain.send((at,))
    assert [chain.receive() for _ in range(20)] == [(at, 0, 1, 2) for at in range(20)]


def test_more_in_flight_than_pipes_hold_does_not_block(chain: Chain) -> None:
    big = b"x" * 3_000_000
    for _ in range(8):
        chain.send((big,))
    assert [len(chain.receive()[0]) for _ in range(8)] == [len(big)] * 8


def test_closing_ends_all_and_what_was_sent_is_worked_off(chain: Chain) -> None:
    chain.send((1,))
    chain.close()
    _wait_until_gone(chain.pids)
    assert chain.receive() == (1, 0, 1, 2)
    with pytest.raises(LinkEnded, match="the links were closed"):
        chain.receive()
    with pytest.raises(LinkEnded, match="the links were closed"):
        chain.send((2,))
    chain.close()


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_link_that_is_killed_is_named_and_takes_the_row_along(chain: Chain, victim: int) -> None:
    chain.send((1,))
    chain.receive()
    os.kill(chain.pids[victim], signal.SIGKILL)
    with pytest.raises(LinkEnded, match=f"link {victim} ended: signal SIGKILL"):
        chain.receive()
    _wait_until_gone(chain.pids)


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_an_error_in_a_link_ends_in_one_line(victim: int, capfd: pytest.CaptureFixture[str]) -> None:
    chain = Chain((sys.executable, "-I", "-c", _ADDS.replace("message == number", f"number == {victim}")), 3, "link")
    chain.send((1,))
    with pytest.raises(LinkEnded, match=f"link {victim} ended: exit code 1"):
        chain.receive()
    assert "told to" in capfd.readouterr().err


def test_sending_to_a_dead_link_says_so(chain: Chain) -> None:
    os.kill(chain.pids[0], signal.SIGKILL)
    _wait_until_gone(chain.pids)
    with pytest.raises(LinkEnded, match="link 0 ended: signal SIGKILL"):
        chain.send((b"x" * 1_000_000,))


def test_interrupts_do_not_end_links(chain: Chain) -> None:
    for pid in chain.pids:
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    chain.send((1,))
    assert chain.receive() == (1, 0, 1, 2)


def test_closing_frees_who_waits_for_a_link_that_stands_still(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_module, "_PATIENCE", 0.1)
    chain.send((1,))
    chain.receive()
    os.kill(chain.pids[1], signal.SIGSTOP)
    chain.send((1,))
    told: list[str] = []

    def wait() -> None:
        with pytest.raises(LinkEnded) as ended:
            chain.receive()
        told.append(str(ended.value))

    waits = threading.Thread(target=wait)
    waits.start()
    chain.close()
    waits.join(10)
    assert not waits.is_alive()
    # On a busy machine the first link may not end in time either.
    assert told in (["link 0 ended: signal SIGKILL"], ["link 1 ended: signal SIGKILL"])
    _wait_until_gone(chain.pids)


def test_nothing_stays_behind_when_the_first_process_is_killed() -> None:
    code = f"""
import sys, time
from probes.workloads.engine.chain import Chain
chain = Chain({_COMMAND!r}, 3, "link")
chain.send((1,)); chain.receive()
print(*chain.pids, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = tuple(int(word) for word in parent.stdout.readline().split())
        parent.kill()
    assert len(pids) == 3
    _wait_until_gone(pids)


def test_a_program_that_is_missing_leaves_no_descriptor_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="no-such-program"):
        Chain(("/no-such-program",), 2, "link")
    assert len(os.listdir("/proc/self/fd")) == before
