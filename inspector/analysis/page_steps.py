"""Page events worked through with whole arrays: what each leaves behind, and which references it ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inspector.analysis.page_log import (
    ALLOCATED,
    CACHED,
    EVICTED,
    FREED,
    MOST_BLOCKS,
    OFFLOADED,
    RESTORED,
    REUSED,
    PageLog,
)

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Flags = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]

FREE, USED, KEPT, UNKNOWN = range(4)
"""What a page is: free, referenced by requests, unowned with contents that can be reused ("cached"), not known."""
STATUS = 3
HASHED, CERTAIN, OPENS, ODD = 4, 8, 16, 32
OPEN = np.iinfo(np.int32).max
_SHIFT = 1 << 32


@dataclass(frozen=True)
class Stretches:
    """Runs of events without a hole: the first event of each, and below which number blocks and host pages are not
    known when it begins."""

    starts: Int
    base: Int
    host_base: Int

    def of(self, events: Int) -> Int:
        """The stretch of each event."""
        return np.searchsorted(self.starts, events, "right") - 1


@dataclass(frozen=True)
class Before:
    """How things stand when the events begin: per event before them `refs`, `flags`, `content`; per block and host
    page its last event (-1 none); the last counts, in the order of `Steps.counts`."""

    refs: Rows
    flags: Flags
    content: Rows
    last: Rows
    host_last: Rows
    counts: Int


@dataclass(frozen=True)
class Steps:
    """Per event: the references of its block after it, what its block is (`flags`: status, HASHED, CERTAIN, OPENS a
    reference, ODD: fits not what the block was), the event whose contents the block has (for OFFLOADED: that moved;
    -1 none or not known), and five counts: used, kept, settled, host pages that are full, host pages settled."""

    refs: Rows
    flags: Flags
    content: Rows
    counts: Rows


def steps(log: PageLog, low: int, stretches: Stretches, before: Before) -> Steps:
    """Replay the events from number `low` on."""
    events = np.arange(low, len(log), dtype=np.int64)
    host = log.host[low:]
    at = events[~host]
    at = at[np.argsort(log.block[at], kind="stable")]
    refs, flags = np.zeros(len(events), np.int32), np.zeros(len(events), np.int8)
    content = np.full(len(events), -1, np.int32)
    deltas = np.zeros((5, len(events)), np.int64)
    if len(at):
        made, mine, known = _of_blocks(log, at, stretches, before)
        refs[at - low], flags[at - low] = made, mine
        content[at - low] = _contents(log, at, low, stretches, before)
        deltas[:3, at - low] = known
    deltas[3:] = _of_host(log, low, stretches, before)
    return Steps(refs, flags, content, _running(deltas, low, stretches, before))


def _groups(keys: Int, stretch: Int) -> Mask:
    """Where another block or another stretch begins."""
    first: Mask = np.r_[True, (keys[1:] != keys[:-1]) | (stretch[1:] != stretch[:-1])]
    return first


def _carried(last: Rows, keys: Int, stretch: Int, stretches: Stretches) -> Rows:
    """The last event before these of each block (or page), where no hole lies between; else -1."""
    found = np.where(keys < len(last), np.append(last, np.int32(-1))[np.minimum(keys, len(last))], -1)
    same = (found >= 0) & (stretches.of(np.maximum(found, 0).astype(np.int64)) == stretch)
    return np.where(same, found, -1).astype(np.int32)


def _of_blocks(log: PageLog, at: Int, stretches: Stretches, before: Before) -> tuple[Rows, Flags, Int]:
    """References, flags, and what each event adds to used, kept and settled; events sorted by block."""
    block, kind, stretch = log.block[at], log.kind[at], stretches.of(at)
    first = _groups(block, stretch)
    heads = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    previous = _carried(before.last, block[heads], stretch[heads], stretches)
    fresh = block[heads] >= stretches.base[stretch[heads]]
    start_flags = np.where(
        previous >= 0, np.append(before.flags, np.int8(0))[previous], np.where(fresh, FREE | CERTAIN, UNKNOWN)
    ).astype(np.int8)
    start_refs = np.where(previous >= 0, np.append(before.refs, np.int32(0))[previous], 0)

    # After a hole the first word on a block settles it where it can: a page gets contents only from its one owner.
    unseen = np.zeros(len(at), bool)
    unseen[heads] = (previous < 0) & ~fresh
    settling = unseen & (kind == CACHED) & (log.request[at] >= 0)
    reset = np.isin(kind, (ALLOCATED, EVICTED, OFFLOADED, RESTORED)) | settling
    opens = (kind == ALLOCATED) | (kind == REUSED) | settling

    step = (kind == REUSED).astype(np.int64) - (kind == FREED)
    step[heads] += start_refs
    step[reset] = ((kind == ALLOCATED) | settling)[reset]
    refs = _floored(step, first | reset)

    count = np.cumsum(reset)
    certain = (start_flags[group] & CERTAIN != 0) | (count > (count - reset)[heads][group])
    hashed = _last_said(
        kind != FREED, np.isin(kind, (CACHED, REUSED, RESTORED)), heads, group, start_flags & HASHED != 0
    ).astype(bool)
    status = np.where(refs > 0, USED, np.where(~certain, UNKNOWN, np.where(hashed, KEPT, FREE)))
    flags = status | hashed * HASHED | certain * CERTAIN | opens * OPENS

    was = np.r_[np.int64(0), flags[:-1]]
    was[heads] = start_flags
    was_refs = np.r_[np.int64(0), refs[:-1]]
    was_refs[heads] = start_refs
    flags |= _odd(kind, was, was_refs) * ODD
    was_status = was & STATUS
    added = np.stack([(status == what).astype(np.int64) - (was_status == what) for what in (USED, KEPT, UNKNOWN)])
    added[2] *= -1
    return refs.astype(np.int32), flags.astype(np.int8), added


def _odd(kind: npt.NDArray[np.int8], was: Int, refs: Int) -> Mask:
    """Events that do not fit what their block was; where that is not certain, all fit."""
    status = was & STATUS
    odd = ((kind == ALLOCATED) | (kind == RESTORED)) & (status != FREE)
    odd |= ((kind == EVICTED) | (kind == OFFLOADED)) & (status != KEPT)
    odd |= (kind == FREED) & (refs == 0)
    odd |= (kind == REUSED) & (was & HASHED == 0)
    fits: Mask = odd & (was & CERTAIN != 0)
    return fits


def _floored(step: Int, begins: Mask) -> Int:
    """Running sums of `step` that begin anew where `begins`, and never fall below 0."""
    heads = np.flatnonzero(begins)
    run = np.cumsum(begins) - 1
    total = np.cumsum(step)
    local = total - (total - step)[heads][run]
    # Each run lies far below the one before it, so that one running minimum serves all.
    far = (len(step) + int(np.abs(step).max(initial=0)) + 1) * 2
    lowest = np.minimum.accumulate(local - run * far) + run * far
    floored: Int = local + np.maximum(-lowest, 0)
    return floored


def _last_said(
    speaks: Mask, says: npt.NDArray[np.generic], heads: Int, group: Int, start: npt.NDArray[np.generic]
) -> Int:
    """What the last event of the group that `speaks` says (itself included), else what held at its start."""
    places = np.maximum.accumulate(np.where(speaks, np.arange(len(speaks)), -1))
    known = places >= heads[group]
    said: Int = np.where(known, says[np.maximum(places, 0)], start[group])
    return said


def _contents(log: PageLog, at: Int, low: int, stretches: Stretches, before: Before) -> Rows:
    """The event that gave each block what it holds after each event; of OFFLOADED what it held before."""
    block, kind, stretch = log.block[at], log.kind[at], stretches.of(at)
    first = _groups(block, stretch)
    heads, group = np.flatnonzero(first), np.cumsum(first) - 1
    previous = _carried(before.last, block[heads], stretch[heads], stretches)
    carried = np.append(before.content, np.int32(-1))[previous]
    # An old event that left no contents tells of what moved away or of nothing.
    carried = np.where(np.append(before.flags, np.int8(0))[previous] & HASHED != 0, carried, -1)
    gives = (kind == CACHED) | (kind == RESTORED)
    giver = _last_said(np.isin(kind, (FREED, REUSED), invert=True), np.where(gives, at, -1), heads, group, carried)
    was = np.r_[np.int64(-1), giver[:-1]]
    was[heads] = carried
    giver = np.where(kind == OFFLOADED, was, giver)

    back = np.flatnonzero(kind == RESTORED)
    if len(back):
        origin = np.arange(low, len(log), dtype=np.int64)
        moved = _moved(log, at[back], low, stretches, before)
        by_event = np.full(len(log) - low, -1, np.int64)
        by_event[at - low] = giver
        inside = moved >= low
        origin[at[back] - low] = np.where(inside, by_event[np.maximum(moved - low, 0)], -1)
        old = (moved >= 0) & ~inside
        origin[at[back[old]] - low] = before.content[moved[old]]
        while True:
            # What was restored may have been restored and moved away before.
            now = origin[at[back] - low]
            further = np.where(now >= low, origin[np.maximum(now - low, 0)], now)
            if np.array_equal(now, further):
                break
            origin[at[back] - low] = further
        giver = np.where(giver >= low, origin[np.maximum(giver - low, 0)], giver)
    return giver.astype(np.int32)


def _moved(log: PageLog, restored: Int, low: int, stretches: Stretches, before: Before) -> Int:
    """For each RESTORED event the OFFLOADED one that filled the host page it comes from; -1 not known."""
    pages, kinds, events = _host_events(log, low)
    # One more at the end, so that there is one.
    pages, kinds, events = np.append(pages, MOST_BLOCKS), np.append(kinds, np.int8(0)), np.append(events, 0)
    keys = pages * _SHIFT + events
    place = np.searchsorted(keys, log.other[restored] * _SHIFT + restored) - 1
    held = np.maximum(place, 0)
    stretch = stretches.of(restored)
    near = (place >= 0) & (pages[held] == log.other[restored]) & (stretches.of(events[held]) == stretch)
    found = np.where(near & (kinds[held] == OFFLOADED), events[held], -1)
    carried = _carried(before.host_last, log.other[restored], stretch, stretches).astype(np.int64)
    kept = (carried >= 0) & (log.kind[np.maximum(carried, 0)] == OFFLOADED)
    return np.where(near, found, np.where(kept, carried, -1))


def _host_events(log: PageLog, low: int) -> tuple[Int, npt.NDArray[np.int8], Int]:
    """Host page, kind and number of the events that fill or empty a host page, sorted by page."""
    events = np.arange(low, len(log), dtype=np.int64)
    host, kind = log.host[low:], log.kind[low:]
    moves = ((kind == OFFLOADED) | (kind == RESTORED)) & ~host & (log.other[low:] >= 0)
    at = events[moves | host & (kind == EVICTED)]
    pages = np.where(log.host[at], log.block[at], log.other[at])
    order = np.argsort(pages, kind="stable")
    return pages[order], log.kind[at][order], at[order]


def _of_host(log: PageLog, low: int, stretches: Stretches, before: Before) -> Int:
    """What each event adds to the host pages that are full, and to those that are known."""
    added = np.zeros((2, len(log) - low), np.int64)
    pages, kinds, events = _host_events(log, low)
    if not len(pages):
        return added
    stretch = stretches.of(events)
    first = _groups(pages, stretch)
    heads = np.flatnonzero(first)
    previous = _carried(before.host_last, pages[heads], stretch[heads], stretches)
    full = (kinds == OFFLOADED).astype(np.int64)
    was, known = np.r_[0, full[:-1]], np.ones(len(pages), bool)
    was[heads] = (previous >= 0) & (log.kind[np.maximum(previous, 0)] == OFFLOADED)
    known[heads] = (previous >= 0) | (pages[heads] >= stretches.host_base[stretch[heads]])
    added[0, events - low] = full - was
    added[1, events - low] = ~known
    return added


def _running(deltas: Int, low: int, stretches: Stretches, before: Before) -> Rows:
    """Counts after each event; a hole sets them to 0."""
    size = deltas.shape[1]
    total = np.concatenate([np.zeros((len(deltas), 1), np.int64), np.cumsum(deltas, axis=1)], axis=1)
    begin = stretches.starts[stretches.of(np.arange(low, low + size, dtype=np.int64))]
    goes_on = begin < low
    counts = total[:, 1:] - total[:, np.maximum(begin - low, 0)] + np.where(goes_on, before.counts[:, None], 0)
    result: Rows = counts.astype(np.int32)
    return result


def closings(log: PageLog, low: int, stretches: Stretches, flags: Flags, held: Rows) -> tuple[Int, Int]:
    """References that were open (`held`) or are taken from event `low` on, as the events that took them, and what ends
    each: that its request lets go or takes the block again, that the block becomes another page, or a hole; else OPEN.
    """
    events = np.arange(low, len(log), dtype=np.int64)
    mine = ~log.host[low:]
    taken = np.r_[held.astype(np.int64), events[mine & (flags[low:] & OPENS != 0)]]
    freed = events[mine & (log.kind[low:] == FREED)]
    everyone = np.r_[taken, freed]
    pair = np.unique(log.block[everyone] * _SHIFT + (log.request[everyone] + 1), return_inverse=True)[1]
    order = np.argsort(pair.reshape(-1) * _SHIFT + everyone)
    following = np.full(len(everyone), OPEN, np.int64)
    same = pair.reshape(-1)[order[1:]] == pair.reshape(-1)[order[:-1]]
    following[order[:-1][same]] = everyone[order[1:][same]]
    closed = following[: len(taken)]

    kind = log.kind[low:]
    changes = events[mine & np.isin(kind, (ALLOCATED, EVICTED, OFFLOADED, RESTORED))]
    keys = np.sort(log.block[changes] * _SHIFT + changes)
    wanted = log.block[taken] * _SHIFT + taken
    place = np.searchsorted(keys, wanted, "right")
    after = np.append(keys, -1)[place]
    closed = np.where((after >= 0) & (after // _SHIFT == log.block[taken]), np.minimum(closed, after % _SHIFT), closed)
    hole = np.append(stretches.starts, OPEN)[np.searchsorted(stretches.starts, taken, "right")]
    return taken, np.minimum(closed, hole)
