"""What numbers tell of lost, repeated and late records, and of restarts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inspector.trace.quality import Quality
from probes.server_http.numbering import Numbering
from probes.server_http.pages import Pages
from probes.server_http.pool import Pool
from tests.probes.test_server_http_values import answer


@dataclass
class Said:
    """Lives of a server, each with the numbers that came, in order, and what was said in between."""

    lives: list[list[int]] = field(default_factory=list)
    stream: list[tuple[int, int]] = field(default_factory=list)


@st.composite
def servers(draw: st.DrawFn) -> Said:
    said = Said()
    for life in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, 3)) if life else draw(st.integers(0, 100))
        numbers = [start]
        # Each life goes beyond the beginning of the next one, which is in none of its gaps: else it looks late.
        for step in (1, 1, 1, *draw(st.lists(st.integers(1, 4), min_size=3, max_size=12))):
            numbers.append(numbers[-1] + step)
        said.lives.append(numbers)
        told = [(number, life) for number in numbers]
        for at in sorted(draw(st.sets(st.integers(1, len(numbers) - 2), max_size=3))):
            # The first and the last stay where they are, else nobody could tell a late one from a restart.
            if draw(st.booleans()) and at + 1 < len(numbers) - 1:
                told[at], told[at + 1] = told[at + 1], told[at]
        for at in sorted(draw(st.sets(st.integers(0, len(told) - 1), max_size=3)), reverse=True):
            told.insert(draw(st.integers(at + 1, len(told))), told[at])
        said.stream += told
    return said


@given(servers())
def test_lost_and_restarts_are_those_of_the_lives(said: Said) -> None:
    numbering = Numbering()
    seen = []
    for number, life in said.stream:
        seen.append(numbering.place(number, {"life": life, "number": number}))
    assert numbering.restarts == len(said.lives) - 1
    assert numbering.lost == sum(life[-1] - life[0] + 1 - len(life) for life in said.lives)
    assert seen.count("same") == len(said.stream) - sum(map(len, said.lives))
    assert "again" not in seen


@given(st.lists(st.integers(1, 6), min_size=1, max_size=20), st.integers(1, 10))
def test_of_a_server_that_tells_every_nth(steps: list[int], nth: int) -> None:
    numbering, number = Numbering(every_nth=True), 7
    for step in (0, *steps):
        number += step * nth
        numbering.place(number, {"at": number})
    apart = math.gcd(*steps)
    assert numbering.lost == sum(step // apart - 1 for step in steps)


def test_what_another_reader_took_is_counted() -> None:
    numbering = Numbering(every_nth=True)
    for number in (1, 3, 6, 8, 11):
        numbering.place(number, {"iter": number})
    assert (numbering.lost, numbering.restarts) == (6, 0)


class Rows:
    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def add(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        if table == "page_events":
            self.events += rows


def event(number: int, digest: int) -> dict[str, Any]:
    blocks = [{"block_hash": digest, "cache_level": 0}]
    return {"event_id": number, "data": {"type": "stored", "parent_hash": None, "blocks": blocks}, "window_size": 8}


def test_an_event_that_is_told_twice_forgets_nothing() -> None:
    rows = Rows()
    pages = Pages(rows, Quality(), Pool(rows))  # type: ignore[arg-type]
    pages.take(answer(), [event(0, 5), event(1, 6), event(1, 6), event(2, 7)])
    assert [(row[4], row[8]) for row in rows.events] == [(2, 5), (2, 6), (2, 7)]
    assert (pages.records, pages.lost, pages.restarts) == (3, 0, 0)


def test_a_server_that_begins_as_it_began_before_keeps_what_it_told_then() -> None:
    rows = Rows()
    pages = Pages(rows, Quality(), Pool(rows))  # type: ignore[arg-type]
    pages.take(answer(), [event(0, 5), event(1, 6), event(2, 7)])
    pages.take(answer(), [event(0, 5), event(1, 8)])
    kinds = [(row[4], row[8]) for row in rows.events[3:]]
    assert kinds == [(4, 5), (4, 6), (4, 7), (2, 5), (2, 8)]
    assert (pages.records, pages.lost, pages.restarts) == (5, 0, 1)
