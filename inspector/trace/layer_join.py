"""Layers of an engine and a profile of it, read from two files, as one: joined by the exact name of each layer."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace

from inspector.trace.layers import EngineLayers, Layer
from inspector.trace.quality import Quality


def joined(engines: Sequence[EngineLayers], quality: Quality) -> tuple[EngineLayers, ...]:
    """`engines` with each profile laid to the layers that share most names with it; the rest stay on their own.

    Of equally good ones the first is taken, and none has two profiles. Notes what finds no partner.
    """
    found = list(engines)
    for profile in engines:
        if profile.is_listed:
            continue
        names = Counter(layer.name for layer in profile.layers)
        best, most = -1, 0
        for at, engine in enumerate(found):
            if not engine.is_listed or engine.is_timed:
                continue
            common = (names & Counter(layer.name for layer in engine.layers)).total()
            if common > most:
                best, most = at, common
        if best >= 0:
            found[best] = join(found[best], profile, quality)
            found = [engine for engine in found if engine is not profile]
        elif any(engine.is_listed for engine in engines):
            quality.add("unlinked", f"{profile.name} shares no layer with files that have no profile yet")
    return tuple(found)


def join(engine: EngineLayers, profile: EngineLayers, quality: Quality) -> EngineLayers:
    """The layers of `engine` with the times of `profile`: of layers of one name the first gets the first time, and so
    on. Times that are of no layer follow as layers of which nothing else is known, so that sums are whole.
    """
    waiting: dict[str, deque[Layer]] = defaultdict(deque)
    for layer in profile.layers:
        waiting[layer.name].append(layer)
    layers, untimed = [], 0
    for layer in engine.layers:
        queue = waiting.get(layer.name)
        if queue:
            layers.append(replace(layer, times=queue.popleft().times))
        else:
            layers.append(layer)
            untimed += layer.launches is not False
    # The order of what is left is that of the profile: queues give their rest from the front.
    left = {name: len(queue) for name, queue in waiting.items() if queue}
    rest = []
    for layer in reversed(profile.layers):
        if left.get(layer.name, 0) > 0:
            left[layer.name] -= 1
            rest.append(layer)
    rest.reverse()
    if untimed:
        quality.add("unlinked", f"layers of {engine.name} that have no time in {profile.name}", untimed)
    if rest:
        quality.add("unlinked", f"times of {profile.name} that are of no layer in {engine.name}", len(rest))
    return replace(
        engine,
        layers=(*layers, *rest),
        profile=profile.name,
        is_timed=True,
        iterations=profile.iterations,
    )
