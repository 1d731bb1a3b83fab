"""When single kernels of graphs are recorded, and what the recorder writes where the taps look."""

from __future__ import annotations

import json
import os
import random
import statistics
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.errors import Usage
from inspector.trace.ring import Ring as Reading
from probes.asking import Asking
from probes.bursts import Bursts, Rule
from probes.inprocess.columns import LAYOUTS
from probes.inprocess.producer import Producer
from probes.inprocess.ring import Ring
from probes.recording import Recording

SECOND = 10**9
ASKED_AT = 224
PLAIN = [("start", "q"), ("end", "q"), ("device", "i"), ("stream", "q"), ("name", "i"), ("correlation", "q")]
TAP = {"kernels": PLAIN, "graphs": PLAIN}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("every=5,for=0.2", Rule(0.2, 5.0)),
        ("every=2", Rule(0.2, 2.0)),
        ("slow", Rule(0.2, 0.0, True)),
        (" slow , for=3 , every=60 ", Rule(3.0, 60.0, True)),
    ],
)
def test_rules(text: str, rule: Rule) -> None:
    assert Rule.parse(text) == rule


@pytest.mark.parametrize(
    "text", ["", "for=1", "every=0", "every=x", "every=nan", "for=61,slow", "every=1,for=1", "slow=1", "often"]
)
def test_what_is_no_rule_is_said(text: str) -> None:
    with pytest.raises(Usage):
        Rule.parse(text)


@given(st.floats(0.3, 20), st.floats(0.01, 0.29), st.lists(st.integers(1, 3 * SECOND), max_size=60))
def test_bursts_by_time(every: float, seconds: float, pauses: list[int]) -> None:
    start, now = 7 * SECOND, 7 * SECOND
    bursts = Bursts(Rule(seconds, every), start)
    slots = set()
    for pause in pauses:
        now += pause
        slot = (now - start) // round(every * SECOND)
        fresh = slot > 0 and slot not in slots
        slots |= {slot} if slot else set()
        count, until = bursts.count, bursts.until_ns
        bursts.tick(now)
        # One for each span of time in which anybody looked, from its first look on; one that goes on is made longer.
        assert bursts.count - count == (fresh and now >= until)
        assert bursts.until_ns == (now + round(seconds * SECOND) if fresh else until)


def test_a_slow_step_begins_one_and_the_next_one_waits() -> None:
    bursts = Bursts(Rule(0.5, slow=True), 0)
    generator = random.Random(5)
    usual = [generator.randint(8, 12) * 10**6 for _ in range(64)]
    bursts.tick(1, [*usual[:32], 10**9])  # too early to say what is usual
    assert bursts.count == 0
    bursts = Bursts(Rule(0.5, slow=True), 0)
    bursts.tick(1, usual)
    limit = 2 * statistics.median(usual)
    bursts.tick(2, [int(limit)])
    assert bursts.count == 0
    bursts.tick(3, [int(limit) + 10**6])
    assert (bursts.count, bursts.until_ns) == (1, 3 + SECOND // 2)
    bursts.tick(SECOND, [10**9])
    assert bursts.count == 1
    bursts.tick(11 * SECOND, [10**9])
    assert bursts.count == 2


def test_a_request_makes_a_burst_longer_never_shorter() -> None:
    bursts = Bursts(None, 0)
    bursts.tick(5, [10**9] * 100)
    assert bursts.count == 0
    bursts.request(10, 2)
    bursts.request(20, 1)
    assert (bursts.until_ns, bursts.count) == (10 + 2 * SECOND, 1)
    with pytest.raises(Usage):
        bursts.request(30, 61)


def asked(path: Path) -> list[int]:
    """What the tap of that ring would read."""
    data = path.read_bytes()[ASKED_AT : ASKED_AT + 32]
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, 32, 8)]


def test_only_the_taps_are_told_and_of_the_steps_of_their_own_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording(tmp_path / "x.inflight", ["it"], {})
    tap = Ring(str(recording.path / "kernels-1.ring"), "kernels", TAP, 1 << 16)
    executor = Producer(str(recording.path), "trtllm")
    monkeypatch.setattr(os, "getpid", lambda: 99)
    other = Ring(str(recording.path / "kernels-99.ring"), "kernels", TAP, 1 << 16)
    monkeypatch.undo()
    asking = Asking(recording)
    row = [0] * len(LAYOUTS["iterations"])
    executor.add("iterations", [(at, at + 7, at, *row[3:]) for at in range(1, 6)])
    recording.drain()
    assert asking.hear(b'{"nodes": 2}\n', 1000)
    assert asking.hear(b'{"kernels": "off"}', 1000)
    asking.saw_busy(3)
    asking.tick(2000)
    assert asked(Path(tap.path)) == [1000 + 2 * SECOND, 1, 5, 3]
    assert asked(Path(other.path)) == [1000 + 2 * SECOND, 1, 0, 3]
    (own,) = recording.path.glob("trtllm-*.ring")
    assert asked(own) == [0, 0, 0, 0]
    assert asking.told == {"bursts of single kernels": "1", "stopped": "on demand"}
    # As long as one of them records, a busy GPU is nothing to tell of.
    tap.put(0, 1, struct.pack("<qqiqiq", 1, 2, 0, 7, -1, 5))
    recording.drain()
    asking.saw_busy(9)
    asking.tick(2500)
    assert asked(Path(other.path))[3] == 3
    asking.saw_busy(2)
    asking.tick(2600)
    assert asked(Path(other.path))[3] == 5
    assert asking.hear(b'{"kernels": "on"}', 3000)
    asking.tick(3000)
    assert asked(Path(tap.path))[1] == 0
    # What stands there is no damage to who reads the ring.
    reading = Reading(Path(tap.path))
    assert reading.lost() == {}
    assert not reading.counts().closed
    reading.close()
    for each in (executor, tap, other):
        each.close()
    recording.close_streams()
    recording.leave()


_LEAVES = st.one_of(st.none(), st.booleans(), st.floats(), st.sampled_from(["on", "off", ""]))
_LINES = st.dictionaries(st.sampled_from(["nodes", "kernels", "x"]), st.one_of(_LEAVES, st.lists(_LEAVES)), max_size=2)


@given(st.one_of(st.binary(max_size=40), st.one_of(_LINES, _LEAVES).map(lambda value: json.dumps(value).encode())))
def test_other_lines_are_not_for_the_taps(line: bytes) -> None:
    class Nothing:
        start_ns = 0

    asking = Asking(Nothing())
    heard = asking.hear(line, 10)
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    ours = isinstance(said, dict) and len(said) == 1
    number = ours and isinstance(said.get("nodes"), float | int) and not isinstance(said.get("nodes"), bool)
    assert heard == bool(ours and (number or said.get("kernels") in ("on", "off")))
