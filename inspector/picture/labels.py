"""Names in little room: what a kernel is called, shortened step by step until it fits."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_LEAD = re.compile(r"^(?:void|static|__global__)\s+")
_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|\{anonymous\}::")
# Arguments that say nothing to a reader in a hurry, inside the names of templates that wrap another kernel.
_WRAPPERS = re.compile(r"^(?:device_kernel|Kernel2?|GemmUniversal)$")


@lru_cache(maxsize=65536)
def forms(name: str) -> tuple[str, ...]:
    """The name from long to short: as it is, without return type and arguments, without template arguments, without
    namespaces. Each is shorter than the one before.
    """
    found = [name]
    bare = _ANONYMOUS.sub("", _LEAD.sub("", name))
    for form in (bare, _without(bare, "()"), _without(_without(bare, "()"), "<>"), _last(bare)):
        if form and len(form) < len(found[-1]):
            found.append(form)
    return tuple(found)


def short(name: str) -> str:
    """The shortest form that still names it."""
    return forms(name)[-1]


def fit(name: str, fits: Callable[[str], bool]) -> str:
    """The longest form that `fits`, else the shortest, cut with an ellipsis; '' if under three letters would stay."""
    for form in forms(name):
        if fits(form):
            return form
    text = forms(name)[-1]
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(text[:middle] + "…"):
            low = middle
        else:
            high = middle - 1
    return text[:low] + "…" if low >= 3 else ""


def _without(text: str, pair: str) -> str:
    """`text` without what stands between the brackets of `pair`, at any depth; unbalanced text is left as it is."""
    opening, closing = pair[0], pair[1]
    if opening not in text or text.startswith((opening, "[")):
        return text
    kept: list[str] = []
    depth = 0
    for letter in text:
        if letter == opening:
            depth += 1
        elif letter == closing and depth:
            depth -= 1
        elif not depth:
            kept.append(letter)
    return text if depth else "".join(kept).strip()


def _last(bare: str) -> str:
    """The function's own name: template arguments, arguments and namespaces gone; of a wrapper, what it wraps."""
    plain = _without(_without(bare, "()"), "<>")
    if "::" not in plain and "<" not in bare:
        return plain
    own = plain.rsplit("::", 1)[-1].strip()
    if _WRAPPERS.match(own) and "<" in bare:
        inner = bare[bare.index("<") + 1 :].split("<")[0].split(",")[0]
        return inner.rsplit("::", 1)[-1].strip(" >") or own
    return own
