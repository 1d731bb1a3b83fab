"""Whether the tables of an engine's recording agree with each other: told in plain loops, one statement a check.

It shares no code with the analyses: what it says of a recording is a second opinion.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from inspector.trace.schema import NEVER, PAGE_EVENTS, PHASES
from inspector.trace.trace import Trace

Row = dict[str, int]


def rows(trace: Trace, table: str) -> list[Row]:
    """The rows of a table, unknown columns filled in."""
    schema = trace[table].schema
    columns = {column.name: trace[table].get(column.name).tolist() for column in schema.columns}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def disagreements(trace: Trace) -> list[str]:
    """One line for each thing that does not add up; empty when all agree."""
    return [*_steps(trace), *_requests(trace), *_pages(trace), *_tokens(trace), *_order(trace)]


def _steps(trace: Trace) -> list[str]:
    wrong = []
    sums: dict[int, Counter[str]] = defaultdict(Counter)
    for step in rows(trace, "steps"):
        phase = PHASES[step["phase"]]
        of = sums[step["iteration"]]
        of[phase] += 1
        for key in ("tokens", "drafted", "accepted", "emitted"):
            of[key] += max(step[key], 0)
        if phase == "context":
            of["context_tokens"] += step["tokens"]
        if step["accepted"] > step["drafted"]:
            wrong.append(f"step {step}: more accepted than drafted")
    for at, iteration in enumerate(rows(trace, "iterations")):
        number, of = iteration["iteration"], sums[at]
        pairs = {
            "context_requests": of["context"],
            "generation_requests": of["generation"],
            "completed_requests": of["finished"],
            **{key: of[key] for key in ("tokens", "context_tokens", "drafted", "accepted", "emitted")},
        }
        wrong += [
            f"iteration {number}: {key} is {iteration[key]}, its steps say {told}"
            for key, told in pairs.items()
            if iteration[key] not in (-1, told)
        ]
        if iteration["max_num_tokens"] != -1 and iteration["tokens"] > iteration["max_num_tokens"]:
            wrong.append(f"iteration {number}: more tokens than the budget")
        if iteration["max_batch_size"] != -1 and of["context"] + of["generation"] > iteration["max_batch_size"]:
            wrong.append(f"iteration {number}: more requests than the batch holds")
    return wrong


def _requests(trace: Trace) -> list[str]:
    wrong = []
    emitted: Counter[int] = Counter()
    finished: Counter[int] = Counter()
    for step in rows(trace, "steps"):
        emitted[step["request"]] += max(step["emitted"], 0)
        finished[step["request"]] += PHASES[step["phase"]] == "finished"
    seen: Counter[tuple[int, int]] = Counter()
    for at, request in enumerate(rows(trace, "requests")):
        name = f"request {request['request']}"
        seen[request["process"], request["request"]] += 1
        if request["output_tokens"] not in (-1, emitted[at]):
            wrong.append(f"{name}: {request['output_tokens']} tokens, its steps emitted {emitted[at]}")
        if request["finished"] != NEVER and finished[at] != 1:
            wrong.append(f"{name}: finished in {finished[at]} iterations")
        times = [request[key] for key in ("arrival", "scheduled", "first_token", "last_token", "finished")]
        known = [time for time in times if time != NEVER]
        if known != sorted(known):
            wrong.append(f"{name}: its times are out of order: {times}")
    wrong += [f"request {key} is there {count} times" for key, count in seen.items() if count > 1]
    return wrong


def _pages(trace: Trace) -> list[str]:
    """Pages in use at the end of every iteration against a replay of the page events until then."""
    wrong = []
    holders: dict[int, list[int]] = defaultdict(list)
    hashed: set[int] = set()
    hosted: set[int] = set()
    events = sorted(rows(trace, "page_events"), key=lambda event: event["sequence"])
    numbers = [event["sequence"] for event in events]
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        wrong.append("page events are missing: their sequence has holes")
    at = 0
    for iteration in rows(trace, "iterations"):
        while at < len(events) and events[at]["time"] <= iteration["end"]:
            wrong += _page(events[at], holders, hashed, hosted)
            at += 1
        used = sum(bool(requests) for requests in holders.values())
        cached = sum(not holders[block] for block in hashed)
        for key, told in (("used_blocks", used), ("cached_blocks", cached), ("host_blocks", len(hosted))):
            if iteration[key] not in (-1, told):
                wrong.append(f"iteration {iteration['iteration']}: {key} is {iteration[key]}, the events say {told}")
    return wrong


def _page(event: Row, holders: dict[int, list[int]], hashed: set[int], hosted: set[int]) -> list[str]:
    kind, block, request = PAGE_EVENTS[event["kind"]], event["block"], event["request"]
    held = holders[block] if event["tier"] == 0 else []
    fine = True
    if kind == "allocated":
        fine = not held and block not in hashed
        held.append(request)
    elif kind == "cached":
        fine = bool(held) and event["hash"] != 0
        hashed.add(block)
    elif kind == "reused":
        fine = block in hashed and request not in held
        held.append(request)
    elif kind == "freed":
        fine = request in held
        if fine:
            held.remove(request)
    elif kind == "evicted" and event["tier"] == 1:
        fine = block in hosted
        hosted.discard(block)
    elif kind == "evicted":
        fine = not held and block in hashed
        hashed.discard(block)
    elif kind == "offloaded":
        fine = not held and block in hashed and event["other"] not in hosted
        hashed.discard(block)
        hosted.add(event["other"])
    elif kind == "restored":
        fine = not held and block not in hashed and event["other"] in hosted
        hashed.add(block)
        hosted.discard(event["other"])
    return [] if fine else [f"page event {event['sequence']}: {kind} of block {block} cannot be here"]


def _tokens(trace: Trace) -> list[str]:
    """Token texts, where a request has them, are as many as its steps emitted, drafted and accepted."""
    wrong = []
    kept: Counter[tuple[int, int]] = Counter()
    for token in rows(trace, "tokens"):
        kept[token["iteration"], token["request"]] += token["kind"] != 2
    followed = {request for _, request in kept}
    for step in rows(trace, "steps"):
        key = (step["iteration"], step["request"])
        if step["request"] in followed and max(step["emitted"], 0) != kept[key] and step["emitted"] > 0:
            wrong.append(f"step {step}: {kept[key]} token texts, {step['emitted']} tokens emitted")
    return wrong


def _order(trace: Trace) -> list[str]:
    iterations = rows(trace, "iterations")
    numbers = [row["iteration"] for row in iterations]
    wrong = (
        [] if numbers == list(range(numbers[0], numbers[0] + len(numbers)) if numbers else []) else ["holes in `iter`"]
    )
    for name in ("ranges", "kernels", "stage_work", "iterations"):
        wrong += [f"{name}: ends before it starts" for row in rows(trace, name) if row["end"] < row["start"]]
    return wrong
