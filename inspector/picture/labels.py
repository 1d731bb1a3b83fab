"""Texts on a picture: names, shortened step by step until they fit, and times to the nanosecond."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from inspector import units

_LEAD = re.compile(r"^(?:void|static|__global__)\s+")
_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|\{anonymous\}::")
# Arguments that say nothing to a reader in a hurry, inside the names of templates that wrap another kernel.
_WRAPPERS = re.compile(r"^(?:device_kernel|Kernel2?|GemmUniversal)$")
# Python frames: folders before the file, then the file before the function; modules; built-in functions.
_FOLDERS = re.compile(r"^\S*/(?=[^/\s]+\.py\b)")
_PYTHON = re.compile(
    r"^(?:\S+\.py(?:\(\d+\))?|nn\.Module): (?P<name>.+)$|^<built-in (?:method|function) (?P<built_in>\w+).*>$"
)


@lru_cache(maxsize=65536)
def forms(name: str) -> tuple[str, ...]:
    """The name from long to short: as it is, without return type and arguments, without template arguments, without
    namespaces. Each is shorter than the one before.
    """
    python = _PYTHON.match(name)
    if python is not None:
        return _shrinking(name, _FOLDERS.sub("", name), python["name"] or python["built_in"])
    bare = _ANONYMOUS.sub("", _LEAD.sub("", name))
    plain = _without(bare, "()")
    return _shrinking(name, plain, _without(plain, "<>"), _last(bare))


def _shrinking(*texts: str) -> tuple[str, ...]:
    found = [texts[0]]
    for form in texts[1:]:
        if form and len(form) < len(found[-1]):
            found.append(form)
    return tuple(found)


def short(name: str) -> str:
    """The shortest form that still names it."""
    return forms(name)[-1]


def fit(name: str, fits: Callable[[str], bool]) -> str:
    """The longest form without arguments that `fits`, else the shortest, cut with an ellipsis.

    '' where fewer than six letters would stay.
    """
    # Return type and arguments say nothing that the rest does not.
    for form in forms(name)[1:] or (name,):
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
    return text[:low] + "…" if low >= 6 else ""


def moment(time: int) -> str:
    """A time to the nanosecond, in seconds with grouped digits: '1.234 567 890 s'."""
    sign = "−" if time < 0 else ""
    seconds, rest = divmod(abs(time), 1_000_000_000)
    text = f"{rest:09d}"
    while text.endswith("000") and len(text) > 3:
        text = text[:-3]
    return f"{sign}{units.exact(seconds)}.{' '.join(text[at : at + 3] for at in range(0, len(text), 3))} s"


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
