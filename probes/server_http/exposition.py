"""The text format in which servers expose figures to Prometheus, and its relative OpenMetrics, read permissively."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

MOST_LINE = 1 << 16
MOST_LINES = 100_000
KINDS = ("counter", "gauge", "histogram", "summary", "unknown")
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*(?:([a-zA-Z_][a-zA-Z0-9_.]*)|"((?:[^"\\]|\\.)*)")\s*(?:=\s*"((?:[^"\\]|\\.)*)")?\s*(,|\})')
_EMPTY = re.compile(r"\s*\}")
_VALUE = re.compile(r"\s+(\S+)")
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "\\": "\\", '"': '"'}
# What a family's samples are called after.
_SUFFIXES = ("_bucket", "_count", "_sum", "_total", "_created", "_info")

Labels = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """One line: its own name, that of its family and of what kind that is, its labels sorted, and its value."""

    name: str
    family: str
    kind: str
    labels: Labels
    value: float


class Read(NamedTuple):
    """Samples in their order, the units that were told by family, and how many lines could not be read."""

    samples: list[Sample]
    units: dict[str, str]
    wrong: int


def read(text: str, clean: Callable[[str], str] = str) -> Read:
    """All samples of a text. What is beyond the bounds counts as lines that could not be read. `clean` takes secrets
    out of names, labels and units.
    """
    kinds: dict[str, str] = {}
    units: dict[str, str] = {}
    samples: list[Sample] = []
    wrong = 0
    for number, line in enumerate(_lines(text)):
        if number >= MOST_LINES or len(line) > MOST_LINE:
            wrong += 1
            if number >= MOST_LINES:
                break
            continue
        line = line.strip(" \t\r")
        if line.startswith("#"):
            words = line.split(None, 3)
            if len(words) == 4 and words[1] == "TYPE":
                kinds[words[2].strip('"')] = words[3].strip()
            elif len(words) == 4 and words[1] == "UNIT":
                units[words[2].strip('"')] = words[3].strip()
            continue
        if not line:
            continue
        found = _sample(line, kinds)
        if found is None:
            wrong += 1
        else:
            labels = tuple((clean(key), clean(value)) for key, value in found.labels)
            samples.append(found._replace(name=clean(found.name), family=clean(found.family), labels=labels))
    return Read(samples, {clean(family): clean(unit) for family, unit in units.items()}, wrong)


def is_exposition(text: str) -> bool:
    """Whether a body is such a text: its first lines are comments of the format, or samples."""
    for line in text[:MOST_LINE].splitlines()[:20]:
        line = line.strip()
        if line.startswith(("# TYPE ", "# HELP ", "# UNIT ", "# EOF")):
            return True
        if line and not line.startswith("#"):
            return _sample(line, {}) is not None
    return False


def _lines(text: str) -> Iterator[str]:
    """Lines by line feeds only: a label may hold any other separator."""
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[at:end]
        at = end + 1


def _sample(line: str, kinds: dict[str, str]) -> Sample | None:
    match = _NAME.match(line)
    name, at = (match[0], match.end()) if match else ("", 0)
    while line[at : at + 1] in (" ", "\t") and line[at : at + 2].strip() in ("", "{"):
        at += 1
    labels: list[tuple[str, str]] = []
    if line[at : at + 1] == "{":
        at += 1
        empty = _EMPTY.match(line, at)
        while empty is None:
            label = _LABEL.match(line, at)
            if label is None:
                return None
            at = label.end()
            key = label[1] if label[1] is not None else _unescaped(label[2])
            if label[3] is not None:
                labels.append((key, _unescaped(label[3])))
            elif not name and label[2] is not None:
                # A name of any letters stands among the labels, without a value.
                name = key
            else:
                return None
            if label[4] == "}":
                break
            empty = _EMPTY.match(line, at)
        if empty is not None:
            at = empty.end()
        if line[at : at + 1] not in (" ", "\t"):
            line, at = f" {line[at:]}", 0
    # A time and an exemplar may follow; neither says anything that is needed.
    value = _VALUE.match(line, at)
    if not name or value is None:
        return None
    number = _number(value[1])
    if number is None:
        return None
    family = _family(name, kinds)
    kind = kinds.get(family, "unknown").lower()
    return Sample(name, family, kind if kind in KINDS else "unknown", tuple(sorted(labels)), number)


def _family(name: str, kinds: dict[str, str]) -> str:
    if name in kinds:
        return name
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and name.removesuffix(suffix) in kinds:
            return name.removesuffix(suffix)
    return name


def _number(text: str) -> float | None:
    if not text.isascii() or "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return math.nan if text.lower() == "nil" else None


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[0]), text) if "\\" in text else text
