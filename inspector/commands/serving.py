"""What a summary says of serving: latency, batch, pages, acceptance and bubbles, from the functions of the views."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspector.analysis.batching import Fill
    from inspector.analysis.latency import Spread
    from inspector.trace.selection import Window
    from inspector.trace.trace import Trace

_SPREADS = (
    ("ttft_ns", "TTFT"),
    ("tpot_ns", "TPOT"),
    ("queue_wait_ns", "queue wait"),
    ("itl_ns", "ITL"),
    ("e2e_ns", "E2E"),
)


def serving(trace: Trace, window: Window | None) -> dict[str, Any]:
    """The parts that the trace can tell, by name; what it does not tell is left out, or null inside of a part."""
    parts = {
        "latency": _latency(trace, window),
        "batch": _batch(trace, window),
        "speculation": _speculation(trace, window),
        "pages": _pages(trace, window),
        "pipeline": _pipeline(trace, window),
    }
    return {name: part for name, part in parts.items() if part is not None}


def _latency(trace: Trace, window: Window | None) -> dict[str, Any] | None:
    """Of the requests that arrived in the window."""
    from inspector.analysis.latency import latency

    if not len(trace["requests"]):
        return None
    found = latency(trace, window)
    spreads = (found.ttft, found.tpot, found.wait, found.itl, found.e2e)
    told = {key: _spread(spread) for (key, _), spread in zip(_SPREADS, spreads, strict=True)}
    return {"requests": found.requests, "finished": found.finished, **told}


def _spread(found: Spread) -> dict[str, Any] | None:
    if not found.count:
        return None
    return {"count": found.count, "p50": found.p50, "p90": found.p90, "p99": found.p99, "longest": found.longest}


def _batch(trace: Trace, window: Window | None) -> list[dict[str, Any]] | None:
    """Of the iterations that began in the window, for every engine."""
    from inspector.analysis.batching import EngineBatches, batching

    engines = trace.index(EngineBatches).engines
    found = []
    for each in engines:
        figures = batching(each, window)
        queue = figures.queue_sum / figures.queue_count if figures.queue_count else None
        found.append(
            {
                "process": int(trace["processes"]["pid"][each.process]) if each.process >= 0 else None,
                "from": each.source,
                "iterations": figures.iterations,
                "requests": _fill(figures.requests),
                "tokens": _fill(figures.tokens),
                "queue": {"mean": queue, "most": figures.queue_most} if queue is not None else None,
            }
        )
    return found or None


def _fill(found: Fill) -> dict[str, Any] | None:
    """Used of room, summed over the iterations that tell both."""
    if not found.count:
        return None
    return {"iterations": found.count, "used": found.used, "room": found.room, "most": found.most}


def _speculation(trace: Trace, window: Window | None) -> dict[str, Any] | None:
    """Of the iterations that began in the window; without steps of requests only the sums of iterations."""
    from inspector.analysis.speculation import by_request, counts, of_iterations, passes

    if not len(trace["steps"]):
        drafted, accepted = of_iterations(trace, window)
        more: dict[str, Any] = {"mean_of_requests": None, "passes": None, "tokens_per_pass": None}
    else:
        made = passes(trace, window)
        counted, mean = counts(made), by_request(made).mean_rate
        drafted, accepted = counted.drafted, counted.accepted
        per_pass = 1 + accepted / counted.passes if counted.drafting else None
        more = {
            "mean_of_requests": mean if math.isfinite(mean) else None,
            "passes": counted.passes,
            "tokens_per_pass": per_pass,
        }
    if not drafted:
        return None
    return {"drafted": drafted, "accepted": accepted, "acceptance": accepted / drafted, **more}


def _pages(trace: Trace, window: Window | None) -> dict[str, Any] | None:
    """At the end of the window; of a whole trace when most were in use, which is where the view begins."""
    from inspector.analysis.page_figures import page_figures
    from inspector.analysis.pages import busiest, pages_at
    from inspector.analysis.told_pages import ToldPages

    told = trace.index(ToldPages).applies
    if not told and not len(trace["page_events"]):
        return None
    pages = pages_at(trace, busiest(trace) if window is None else window.end)
    figures, counts = page_figures(trace, pages), pages.counts
    return {
        "time_ns": pages.time,
        "in_use_from": "engine records" if told else "page events",
        "blocks": counts.blocks,
        "in_use": counts.used,
        "can_be_had": counts.available,
        "cached": counts.kept,
        "unknown": counts.unknown,
        "reused": figures.reused if figures.reuse_from else None,
        "missed": figures.missed if figures.reuse_from else None,
        "evicted": figures.evicted,
        "offloaded": figures.offloaded,
        "restored": figures.restored,
        "slots": figures.slots if figures.slots >= 0 else None,
        "filled_slots": figures.filled if figures.filled >= 0 else None,
    }


def _pipeline(trace: Trace, window: Window | None) -> dict[str, Any] | None:
    """Over the time in which iterations ran; only where stages were recorded."""
    from inspector.analysis.pipeline import IDLE, Pipeline, pipeline_figures

    if not len(trace["stage_work"]):
        return None
    found = trace.index(Pipeline)
    figures = pipeline_figures(found, window or trace.whole)
    known = [value if math.isfinite(value) else None for value in (figures.ideal, figures.unequal, figures.contention)]
    return {
        "stages": found.num_stages,
        "iterations": figures.iterations,
        "active_ns": figures.active_ns,
        "between_ns": figures.between_ns,
        "busy_ns": figures.busy_ns.tolist(),
        "idle_ns": dict(zip(IDLE, figures.idle_ns.sum(axis=0).tolist(), strict=True)),
        "bubble": figures.bubble if figures.active_ns else None,
        "equal_stages": known[0],
        "stages_as_unequal": known[1],
        "without_processor": known[2],
    }


def serving_lines(found: dict[str, Any]) -> list[str]:
    """The same for reading, a line each."""
    lines = [line for part in (_latency_lines, _batch_lines, _rest_lines) for line in part(found)]
    return ["", "Serving", *(f"  {line}" for line in lines)] if lines else []


def _latency_lines(found: dict[str, Any]) -> list[str]:
    from inspector import units

    told = found.get("latency")
    if told is None:
        return []
    lines = [f"requests {told['requests']:,} arrived, {told['finished']:,} finished"]
    for key, title in _SPREADS:
        spread = told[key]
        if spread is not None:
            values = " / ".join(units.time(spread[rank]) for rank in ("p50", "p90", "p99"))
            lines.append(f"{title} p50 / p90 / p99: {values} (of {spread['count']:,})")
    return lines


def _batch_lines(found: dict[str, Any]) -> list[str]:
    from inspector import units

    lines = []
    several = len(found.get("batch", ())) > 1
    for engine in found.get("batch", ()):
        whose = f"process {engine['process']}, " if several else ""
        for key, title in (("requests", "batch"), ("tokens", "token budget")):
            fill = engine[key]
            if fill is not None:
                mean = units.three_digits(fill["used"] / fill["iterations"])
                lines.append(
                    f"{whose}{title} {units.share(fill['used'], fill['room'])} full, mean {mean} {key}, most "
                    f"{fill['most']:,}, over {fill['iterations']:,} of {engine['iterations']:,} iterations"
                )
        if engine["queue"] is not None:
            mean = units.three_digits(engine["queue"]["mean"])
            lines.append(f"{whose}queue mean {mean} requests, most {engine['queue']['most']:,}")
    return lines


def _rest_lines(found: dict[str, Any]) -> list[str]:
    from inspector import units

    lines = []
    if "speculation" in found:
        told = found["speculation"]
        line = (
            f"acceptance {units.share(told['accepted'], told['drafted'])}, {told['accepted']:,} of {told['drafted']:,}"
        )
        if told["mean_of_requests"] is not None:
            line += f", mean of requests {100 * told['mean_of_requests']:.1f} %"
        if told["tokens_per_pass"] is not None:
            line += f", {told['tokens_per_pass']:.2f} tokens per pass"
        lines.append(line)
    if "pages" in found:
        told = found["pages"]
        line = f"pages {told['in_use']:,} of {told['blocks']:,} in use at {units.time(told['time_ns'])}"
        if told["reused"] is not None:
            line += f", reuse {units.share(told['reused'], told['reused'] + told['missed'])}"
        lines.append(f"{line}, {told['evicted']:,} evicted until then")
    if "pipeline" in found and found["pipeline"]["bubble"] is not None:
        told = found["pipeline"]
        line = f"bubbles {100 * told['bubble']:.1f} % of {told['stages']} stages over {units.time(told['active_ns'])}"
        line += f" in which iterations ran, {units.time(told['between_ns'])} between them left out"
        if told["equal_stages"] is not None:
            line += f"; equal stages would have {100 * told['equal_stages']:.1f} %"
        if told["without_processor"] is not None:
            line += f"; {100 * told['without_processor']:.1f} % of the busy time without a processor"
        lines.append(line)
    return lines
