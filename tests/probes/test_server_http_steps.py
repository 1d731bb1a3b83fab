"""Steps from requestStats: what each request did is the difference of what records list; what is not told stays so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis.steps import Steps as StepsIndex
from inspector.picture.schedule import UNTOLD, Ask, schedule
from inspector.picture.schedule_axis import Span
from inspector.trace.schema import NEVER, PHASES
from inspector.trace.trace import Trace
from probes.server_http.steps import MOST_LISTED, listed
from tests.probes.attached import asked, hurry, record
from tests.probes.stand_in_server import pytorch, stand_in


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def entry(request: int, stage: str, made: int = 0, position: int = 0, scheduled: bool = True) -> dict[str, Any]:
    return {
        "id": request,
        "stage": stage,
        "numGeneratedTokens": made,
        "contextPrefillPosition": position,
        "scheduled": scheduled,
        "paused": False,
        "allocTotalBlocksPerRequest": 3,
    }


_CONTEXT, _GENERATION, _COMPLETE = "CONTEXT_IN_PROGRESS", "GENERATION_IN_PROGRESS", "GENERATION_COMPLETE"


def told(trace: Trace) -> list[tuple[int, int, str, int, int]]:
    """(iteration, request, phase, tokens, emitted) of every step."""
    steps = trace["steps"]
    return sorted(
        (
            int(trace["iterations"]["iteration"][steps["iteration"][row]]),
            int(trace["requests"]["request"][steps["request"][row]]),
            PHASES[int(steps["phase"][row])],
            int(steps["tokens"][row]),
            int(steps.get("emitted")[row]),
        )
        for row in range(len(steps))
    )


def test_what_requests_did_is_the_difference_of_records(tmp_path: Path) -> None:
    records = [
        [entry(7, _CONTEXT, 0, 64), entry(9, "QUEUED", scheduled=False)],
        [entry(7, _CONTEXT, 0, 128), entry(9, "QUEUED", scheduled=False)],
        [entry(7, _GENERATION, 1, 150), entry(9, _GENERATION, 1, 20)],
        [entry(7, _GENERATION, 2, 150), entry(9, _GENERATION, 1, 20, scheduled=False)],
        [entry(7, _COMPLETE, 3, 150), entry(9, _GENERATION, 2, 20)],
        [entry(9, _GENERATION, 3, 20)],
    ]
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(at, requestStats=each) for at, each in enumerate(records, 10)])
        trace = record(server, tmp_path / "a.inflight", asked(server, "GET /metrics", 3))
    assert told(trace) == [
        # How much of a prompt was there already is not told: of its first chunk only that it was computed.
        (10, 7, "context", -1, -1),
        (11, 7, "context", 64, 0),
        (12, 7, "context", 22, 1),
        (12, 9, "context", -1, 1),
        (13, 7, "generation", 1, 1),
        (14, 7, "finished", 0, 0),
        (14, 7, "generation", 1, 1),
        (14, 9, "generation", 1, 1),
        (15, 9, "generation", 1, 1),
    ]
    requests, iterations = trace["requests"], trace["iterations"]
    seven = int(np.flatnonzero(requests["request"] == 7)[0])
    assert int(requests["arrival"][seven]) == int(iterations["start"][0])
    assert (int(requests["first_token"][seven]), int(requests["last_token"][seven])) == (NEVER, NEVER)
    assert int(requests.get("finished")[seven]) == int(iterations["end"][4])
    assert int(requests["output_tokens"][seven]) == 3
    nine = int(np.flatnonzero(requests["request"] == 9)[0])
    assert int(requests.get("finished")[nine]) == NEVER
    assert trace.quality.count("assumed")
    assert trace.index(StepsIndex).unplaced == 0


def test_what_is_not_told_is_drawn_so(tmp_path: Path) -> None:
    """A record that was lost, and a server that drafts: nobody tells how many tokens."""
    drafts = {"specDecodingStats": {"numDraftTokens": 4, "numAcceptedTokens": 2, "acceptanceLength": 2.0}}
    records = [(1, [entry(7, _GENERATION, 5, 150)]), (4, [entry(7, _GENERATION, 12, 150)])]
    records.append((5, [entry(7, _GENERATION, 14, 150)]))
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(at, requestStats=each, **drafts) for at, each in records])
        trace = record(server, tmp_path / "a.inflight", asked(server, "GET /metrics", 3))
    assert told(trace) == [(1, 7, "generation", -1, -1), (4, 7, "generation", -1, -1), (5, 7, "generation", -1, 2)]
    span = Span(False, 0, 3, 300)
    picture = schedule(trace, Ask(span, 0, 20))
    assert (picture.cells == UNTOLD).any()


def test_ids_of_the_engine_and_of_clients_are_kept_apart(tmp_path: Path) -> None:
    metrics = {"timing_metrics": {"arrival_time": 1.0, "first_token_time": 2.0, "last_token_time": 3.0}}
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1, requestStats=[entry(7, _GENERATION, 5)])])
        server.say("GET /perf_metrics", [], [], [], [{"request_id": 7, "perf_metrics": metrics}])
        trace = record(server, tmp_path / "a.inflight", asked(server, "GET /perf_metrics", 6))
    requests = trace["requests"]
    assert requests["request"].tolist() == [7, 7]
    assert len(set(requests.get("process").tolist())) == 2
    with stand_in() as server:
        server.say("GET /metrics", [], [], [], [], [pytorch(1, requestStats=[entry(7, _GENERATION, 5)])])
        server.say("GET /perf_metrics", [{"request_id": 7, "perf_metrics": metrics}])
        trace = record(server, tmp_path / "b.inflight", asked(server, "GET /metrics", 7))
    assert (len(trace["requests"]), len(trace["steps"])) == (1, 0)
    assert any("ids for clients" in note.text for note in trace.quality.find("ignored"))


_ODD = st.recursive(st.none() | st.integers() | st.text(max_size=3) | st.floats(), st.lists, max_leaves=3)
_ENTRY = st.dictionaries(
    st.sampled_from(["id", "stage", "scheduled", "numGeneratedTokens", "contextPrefillPosition"]),
    st.sampled_from([_CONTEXT, _GENERATION, _COMPLETE, 1, 0, True]) | _ODD,
)


@given(st.lists(_ENTRY | _ODD, max_size=6))
def test_lists_that_are_none_are_taken_as_far_as_they_go(entries: list[Any]) -> None:
    found, more = listed(entries)
    assert len(found) + more <= len(entries)
    assert all(each.request >= 0 and each.made >= -1 and each.position >= -1 for each in found)


def test_endless_lists_are_bounded() -> None:
    found, more = listed([entry(at, _GENERATION) for at in range(MOST_LISTED + 5)])
    assert (len(found), more) == (MOST_LISTED, 5)
