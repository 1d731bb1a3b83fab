"""What the speculation view says in figures."""

from __future__ import annotations

from math import isfinite

from inspector import units
from inspector.analysis.draft_length import NoCost
from inspector.picture.speculation import Group, SpeculationPicture
from ui.speculation.charts import DOUBT, best_words, speedup_words
from ui.widgets.measures import Measure

_UNKNOWN = "–"


def measures(picture: SpeculationPicture) -> list[Measure]:
    """As they are shown, the most important first."""
    drafted, accepted = picture.drafted, picture.accepted
    pooled = Measure(
        "Acceptance, all tokens",
        units.share(accepted, drafted),
        f"{units.count(accepted)} of {units.count(drafted)}",
        "measured",
        f"{accepted:,} of {drafted:,} draft tokens accepted (pooled: every token counts the same)",
        (("Of all tokens", units.share(accepted, drafted)),),
    )
    if picture.everything is None or picture.by_request is None:
        return [pooled, *(Measure(title, _UNKNOWN, "needs steps") for title in ("Mean of requests", "Tokens per pass"))]
    counted, mean = picture.everything.counts, picture.by_request.mean_rate
    had = sum(bool(each) for each in picture.by_request.drafted.tolist())
    of_requests = Measure(
        "Acceptance, mean of requests",
        f"{100 * mean:.1f} %" if isfinite(mean) else _UNKNOWN,
        f"{had:,} requests",
        "measured",
        f"mean of the rates of {had:,} requests that had drafts: every request counts the same",
        (("Mean of requests", f"{100 * mean:.1f} %" if isfinite(mean) else _UNKNOWN),),
    )
    made, drafting = counted.passes, counted.drafting
    per_pass = Measure(
        "Tokens per pass",
        f"{1 + accepted / made:.2f}" if drafting else _UNKNOWN,
        "1 + accepted / passes",
        "measured",
        f"1 + {accepted:,} accepted / {made:,} passes of the target, of which {drafting:,} checked drafts",
    )
    return [pooled, of_requests, per_pass, _given(picture.everything), *_groups(picture), _best(picture)]


def mixed_words(picture: SpeculationPicture) -> list[str]:
    """That figures are of several ways to draft, where it was changed within what they are of."""
    if not picture.mixed:
        return []
    time, what = picture.mixed[-1]
    more = f", the last of {len(picture.mixed):,} such changes" if len(picture.mixed) > 1 else ""
    return [f"Drafting was changed at {units.time(time)} ({what}{more}): figures mix both sides, a range tells one"]


def _given(everything: Group) -> Measure:
    counted = everything.counts
    if counted.emitted < 0 or not counted.passes:
        return Measure("Given out per pass", _UNKNOWN, "not recorded")
    text = f"{counted.emitted / counted.passes:.2f}"
    tip = (
        f"{counted.emitted:,} tokens given out by {counted.passes:,} passes, those without drafts included; "
        "an end token or max_tokens cuts what was accepted"
    )
    return Measure("Given out per pass", text, "", "measured", tip)


def _groups(picture: SpeculationPicture) -> list[Measure]:
    found = []
    for group in picture.groups:
        counted = group.counts
        rate = units.share(counted.accepted, counted.drafted)
        tokens = f"{1 + counted.accepted / counted.passes:.2f} per pass" if counted.drafting else ""
        tip = f"{group.name}: {counted.accepted:,} of {counted.drafted:,} draft tokens accepted"
        found.append(Measure(f"Acceptance, {group.name}", rate, tokens, "measured", tip))
    return found


def _best(picture: SpeculationPicture) -> Measure:
    cost = picture.cost
    if isinstance(cost, NoCost) or picture.everything is None:
        reason = cost.reason if isinstance(cost, NoCost) else ""
        return Measure("Best draft length", _UNKNOWN, "cost unknown", "", f"not known: {reason}")
    found = picture.everything.estimate
    # Beside the chart of groups it has to be said that this is of all of them.
    title = "Best draft length" + (", all requests" if picture.groups else "")
    if found.doubtful:
        # How to come to know it is the part to read where there is room for one.
        short = (("Best: cannot tell", "change it"),)
        tip = f"{best_words(found)}: {DOUBT}"
        return Measure("Best length: cannot tell", "change it as it runs", "", "", tip, short)
    low, high = found.among
    value = (str(found.best) if low == high else f"{low} to {high}") if high else "none"
    tip = (
        f"{best_words(found)} against no drafts at the same batch, of lengths that were drafted. "
        f"Measured over {cost.count:,} iterations: a draft "
        f"pass {units.time(cost.draft)}, the target {units.time(cost.target.at(cost.batch))} for "
        f"{cost.batch:.1f} tokens, {units.time(cost.target.per_token)} more for each, {units.time(cost.rest)} besides"
    )
    untold = [group.name for group in picture.groups if group.estimate.doubtful]
    if untold:
        tip += f". For {', '.join(untold)} alone it cannot be told: a group has fewer passes than all together"
    return Measure(
        title, value, speedup_words(found), "estimated", tip, (("Best, all" if picture.groups else title, value),)
    )
