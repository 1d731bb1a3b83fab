"""What the schedule says in figures: how full the batch was, how long requests waited, how fast tokens came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector import units
from inspector.analysis.batching import Batches, Batching, Fill, batching
from inspector.analysis.latency import Latency, Spread, latency
from inspector.analysis.static_batching import NoModel, StaticBatching
from inspector.picture.schedule import SchedulePicture
from inspector.trace.selection import Window
from ui.widgets.measures import Measure

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

_UNKNOWN = "–"


@dataclass(frozen=True)
class ScheduleFigures:
    """Of a range: the batch (None where no iterations tell of one) and the requests that arrived in it.

    `room_from` and `budget_from` say where the configuration has the limits, '' where they were recorded.
    """

    batching: Batching | None
    latency: Latency
    room_from: str = ""
    budget_from: str = ""

    @property
    def iterations(self) -> int:
        """How many began in the range."""
        return self.batching.iterations if self.batching is not None else 0


def schedule_figures(trace: Trace, batches: Batches | None, window: Window | None) -> ScheduleFigures:
    """Figures of the range; None is the whole trace."""
    filled = batching(batches, window) if batches is not None else None
    if batches is None:
        return ScheduleFigures(filled, latency(trace, window))
    return ScheduleFigures(filled, latency(trace, window), batches.room_from, batches.budget_from)


def measures(found: ScheduleFigures) -> list[Measure]:
    """As they are shown, the most important first."""
    fill = found.batching
    told = found.latency
    return [
        _fill("Batch occupancy", fill.requests if fill else None, found, "requests", "max_batch_size"),
        _fill("Token budget", fill.tokens if fill else None, found, "tokens", "max_num_tokens"),
        _spread("TTFT", told.ttft, "from arrival to the first token"),
        _spread("TPOT", told.tpot, "(last token − first token) / (output tokens − 1)"),
        _spread("Queue wait", told.wait, "from arrival to the first iteration"),
        _spread("ITL", told.itl, "from one pass that gave a request tokens to the next one that did"),
        _spread("E2E", told.e2e, "from arrival to the last token"),
    ]


def _fill(title: str, fill: Fill | None, found: ScheduleFigures, what: str, limit: str) -> Measure:
    if fill is None or not fill.count:
        return Measure(title, _UNKNOWN, f"{limit} unknown", "", f"{title}: {limit} was not recorded")
    mean, share = units.three_digits(fill.used / fill.count), units.share(fill.used, fill.room)
    tip = f"{fill.used:,} of {fill.room:,} {what} over {fill.count:,} iterations, at most {fill.most:,}; measured"
    place = found.room_from if limit == "max_batch_size" else found.budget_from
    if place:
        tip += f"; {limit} was not recorded and is {place}"
    if fill.count == found.iterations:
        note = f"mean {mean} of {fill.room // fill.count:,}, as set" if place else f"mean {mean} {what}"
        return Measure(title, share, note, "measured", tip)
    # Those that tell may be of a kind: a server that drafts counts tokens only where it drafted nothing.
    some = f"{fill.count:,} of {found.iterations:,}"
    tip += f". The other {found.iterations - fill.count:,} iterations do not tell theirs, so it is no mean of all"
    short = (f"{title.split()[0]}, {some}", share)
    return Measure(f"{title}, {some} iterations", share, "of those that tell it", "measured", tip, short)


def _spread(title: str, found: Spread, meaning: str) -> Measure:
    if not found.count:
        return Measure(title, _UNKNOWN, "not known", "", f"{title}, {meaning}: no record tells it")
    tip = (
        f"{title}, {meaning}. p50 {units.exact(round(found.p50))} ns, p90 {units.exact(round(found.p90))} ns, "
        f"p99 {units.exact(round(found.p99))} ns, longest {units.exact(round(found.longest))} ns, "
        f"of {found.count:,}; measured, by nearest rank"
    )
    values = [units.time(value) for value in (found.p50, found.p90, found.p99)]
    unit = values[-1].split()[-1]
    if all(value.endswith(f" {unit}") for value in values):
        values[:2] = [value.split()[0] for value in values[:2]]
    full, short = f"{title} p50 / p90 / p99", (f"{title} p50", units.time(found.p50))
    return Measure(full, " / ".join(values), "", "", tip, short)


def static_words(picture: SchedulePicture) -> tuple[str, ...]:
    """The comparison in words; nothing while static batching is not drawn."""
    model = picture.model
    if model is None:
        return ()
    if isinstance(model, NoModel):
        return (f"No model of static batching: {model.reason}",)
    return (_compared(model),)


def _compared(model: StaticBatching) -> str:
    count = len(model.row)
    mean, ours = model.waited_ns / count, model.in_flight_waited_ns / count
    rates = [units.three_digits(model.tokens * 1e9 / max(span, 1)) for span in (model.in_flight_ns, model.makespan_ns)]
    left_out = f"; {model.left_out:,} that had not finished left out" if model.left_out else ""
    return (
        f"Static batches of {model.size} (modelled from {model.cost.count:,} measured iterations): mean wait "
        f"{units.time(mean)} against {units.time(ours)} in flight; {units.share(model.padded, model.places)} of places "
        f"padding; {rates[1]} against {rates[0]} tokens/s{left_out}"
    )
