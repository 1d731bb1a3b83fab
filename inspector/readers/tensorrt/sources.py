"""Which layers of the network a layer of the engine holds: after its metadata, else after its own name."""

from __future__ import annotations

import re

_ONNX = "[ONNX Layer: "
# ASCII's record and unit separator stand between the entries of metadata.
_SEPARATORS = re.compile("[\x1e\x1f]+")
_TOKENS = re.compile(r"PWN\(|\(|\)| \+ |, ")
_FOREIGN = re.compile(r"^\{ForeignNode\[(.*)\]\}$", re.DOTALL)
_COPY = re.compile(r"^(Reformatting CopyNode for |Reformatted )")
# How Myelin calls what it has compiled: '__myl_AddCast_myl0_8', '/fc1/MatMul+/fc2/MatMul_myl0_9'.
_COMPILED = "__myl_"
_OF_COMPILED = re.compile(r"_myl\d*_\d+$")


def sources_of_metadata(text: str) -> tuple[str, ...]:
    """'[ONNX Layer: /conv1/Conv]\\x1f[ONNX Layer: /relu1/Relu]' -> the two names, each once, in order."""
    found: list[str] = []
    for part in _SEPARATORS.split(text):
        if _ONNX in part:
            before, *names = part.split(_ONNX)
            found += [before.strip(), *(name.strip().removesuffix("]") for name in names)]
        else:
            found.append(part.strip())
    return tuple(dict.fromkeys(name for name in found if name))


def sources_of_name(name: str) -> tuple[tuple[str, ...], bool]:
    """The parts of a fused name, and whether there are more than it names.

    'conv1 + relu1' has two, 'PWN(PWN(a), b)' too; '{ForeignNode[a...b]}' names the first and the last of its own;
    a copy into another format has none. Of what Myelin has compiled the name tells a part at most.
    """
    if _COPY.match(name):
        return (), False
    foreign = _FOREIGN.match(name)
    if foreign is not None:
        first, dots, last = foreign[1].partition("...")
        parts = [*first.split(" + "), *(last.split(" + ") if dots else ())]
        return _once(parts), bool(dots)
    if name.startswith(_COMPILED):
        return (), True
    end = _OF_COMPILED.search(name)
    if end is not None:
        return _once(name[: end.start()].split("+")), True
    return _once(_parts(name) if "PWN(" in name else name.split(" + ")), False


def _once(parts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _parts(name: str) -> list[str]:
    """Those of nested PWN(...); what stands in plain brackets, as in '(Unnamed Layer* 3) [Shuffle]', is one name."""
    found: list[str] = []
    open_brackets: list[bool] = []  # true for those of a PWN
    plain, begin = 0, 0
    for token in _TOKENS.finditer(name):
        text = token[0]
        if text == "PWN(" and not plain:
            open_brackets.append(True)
        elif text in ("PWN(", "("):
            open_brackets.append(False)
            plain += 1
            continue
        elif text == ")":
            if not open_brackets:
                continue
            if not open_brackets.pop():
                plain -= 1
                continue
        elif plain or (text == ", " and not open_brackets):
            continue
        found.append(name[begin : token.start()])
        begin = token.end()
    found.append(name[begin:])
    return found
