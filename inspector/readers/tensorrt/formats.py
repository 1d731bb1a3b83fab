"""What a tensor of an engine is made of, told from the words of the file; and how many bytes that are.

Releases word it differently: 'Thirty-two wide channel vectorized row major Int8 format.', 'Row major linear FP32',
'Half', 'N/A due to dynamic shapes'.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

# Words, what they are called here, bits of one value. The first that is found counts.
_PRECISIONS: tuple[tuple[str, str, int], ...] = (
    (r"\bb(?:float|f)16\b", "BF16", 16),
    (r"\b(?:fp|float)16\b|\bhalf\b", "FP16", 16),
    (r"\b(?:fp|float)8(?:e\dm\d)?\b|\be8m0\b", "FP8", 8),
    (r"\b(?:fp|float)4(?:e\dm\d)?\b", "FP4", 4),
    (r"\bfloatcomplex\b", "C64", 64),
    (r"\bdoublecomplex\b", "C128", 128),
    (r"\b(?:fp|float)64\b|\bdouble\b", "FP64", 64),
    (r"\btf32\b", "TF32", 32),
    (r"\b(?:fp|float)32\b|\bfloat\b", "FP32", 32),
    (r"\buint8\b", "UINT8", 8),
    (r"\buint16\b", "UINT16", 16),
    (r"\buint32\b", "UINT32", 32),
    (r"\buint64\b", "UINT64", 64),
    (r"\bint4\b", "INT4", 4),
    (r"\bint8\b", "INT8", 8),
    (r"\bint16\b", "INT16", 16),
    (r"\bint32\b", "INT32", 32),
    (r"\bint64\b", "INT64", 64),
    (r"\bbool\b", "BOOL", 8),
)
_COMPILED = tuple((re.compile(words), name) for words, name, _ in _PRECISIONS)
_BITS = {name: bits for _, name, bits in _PRECISIONS}
# No memory is larger than 2^48 bytes: a file that says so is wrong, and sums stay within 64 bits.
MOST_BYTES = 1 << 48
LONGEST = 256
"""Characters of the longest format that is looked at."""


def precision_of(text: str) -> str:
    """'FP16' and the like; '' where the words name none that is known."""
    return _precision(text) if len(text) <= LONGEST else ""


@lru_cache(4096)
def _precision(text: str) -> str:
    low = text.lower()
    return next((name for words, name in _COMPILED if words.search(low)), "")


def bytes_of(dimensions: Sequence[int] | None, precision: str) -> int | None:
    """Bytes of a tensor without padding: one value without dimensions. None where anything is not known or absurd."""
    bits = _BITS.get(precision)
    if bits is None or dimensions is None or any(not 0 <= each <= MOST_BYTES for each in dimensions):
        return None
    # TensorRT has eight dimensions at most; the reader takes no more than a few.
    count = math.prod(dimensions)
    size = -(-count * bits // 8)
    return size if size <= MOST_BYTES else None
