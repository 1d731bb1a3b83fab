"""Plain-text tables and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = (0,)) -> str:
    """Aligned columns under `heads`; the columns in `left` are flush left, others (numbers) flush right."""
    cells = [list(heads), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    left = set(left)
    lines = []
    for row in cells:
        padded = [
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def comma_separated(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """CSV with a head line; None is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return out.getvalue()


def shortened(text: str, width: int) -> str:
    """`text` in at most `width` characters, its middle left out."""
    if len(text) <= width:
        return text
    head = (width - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


# Besides the controls: what turns the direction of writing, or ends a line in some places and not in others.
_TURNS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in (9, 10)} | {
    code: f"\\u{code:04x}" for code in _TURNS
}


def plain(text: str) -> str:
    """`text` for a terminal: what names and files from elsewhere hold must not steer it, so controls are escapes."""
    return text.translate(_CONTROLS)
