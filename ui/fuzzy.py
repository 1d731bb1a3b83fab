"""Finding what was meant: letters in order, the better the more they begin words or stand together."""

from __future__ import annotations

_ENOUGH = 0.3
# Less than any title that has the word, more than scattered letters.
_OTHER = 90.0


def score(query: str, text: str) -> float | None:
    """How well `query` fits `text`, higher is better; None when its letters do not all occur in order.

    Blanks in the query are ignored; case too. Of equal fits the shorter text wins.
    """
    wanted = query.casefold().replace(" ", "")
    if not wanted:
        return 0.0
    inside = text.casefold()
    whole = inside.find(query.casefold().strip())
    if whole >= 0:
        begins = whole == 0 or not inside[whole - 1].isalnum()
        return 100.0 + (20.0 if begins else 0.0) - len(text) * 0.1
    total, at, before = 0.0, 0, -2
    for place, letter in enumerate(wanted):
        found = inside.find(letter, at)
        if found < 0:
            return None
        # The start of a word further on is a better match for this letter than the middle of one here.
        start = _word_start(inside, letter, found)
        if start is not None and before + 1 != found and _occurs(wanted[place + 1 :], inside, start + 1):
            found = start
        total += 3.0 if found == before + 1 else 4.0 if start == found else 1.0
        before, at = found, found + 1
    return total - len(text) * 0.05


def ranked(query: str, texts: list[str], others: list[str] | None = None) -> list[int]:
    """Positions of the texts that fit, the best first; equal ones in the order given.

    `others`: what else people call each of them; a word of it, or its beginning, finds it too, a little later.

    Those that fit far worse than the best are left out: scattered letters are found in almost everything.
    """
    fits = [score(query, text) for text in texts]
    for at, other in enumerate(others or ()):
        if query.strip() and f" {query.casefold().strip()}" in f" {other.casefold()}":
            fits[at] = max(fits[at] or 0.0, _OTHER)
    found = [(fit, at) for at, fit in enumerate(fits) if fit is not None]
    enough = max((fit for fit, _ in found), default=0.0) * _ENOUGH
    return [at for fit, at in sorted(found, key=lambda each: (-each[0], each[1])) if fit >= enough]


def _occurs(letters: str, text: str, at: int) -> bool:
    """Whether the letters come in that order from `at` on."""
    for letter in letters:
        at = text.find(letter, at) + 1
        if not at:
            return False
    return True


def _word_start(text: str, letter: str, at: int) -> int | None:
    while at >= 0:
        if at == 0 or not text[at - 1].isalnum():
            return at
        at = text.find(letter, at + 1)
    return None
