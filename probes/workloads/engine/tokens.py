"""Byte-level BPE of 1,024 entries: 256 bytes, four roles, and merges learned from the training text.

Ids below 256 are bytes, so any text has an encoding; the next four mark who speaks; the rest are merges in the order in
which they were learned, which is also the order in which they apply.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

ENTRIES = 1024
ROLES = ("system", "user", "assistant", "end")
SYSTEM, USER, ASSISTANT, END = range(256, 260)
FIRST_MERGE = 260
FILE = Path(__file__).parent / "weights" / "tokens.json"

_WORD = re.compile(r" ?[^\W\d_]+| ?\d| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
_LONGEST_CACHE = 1 << 15


def words(text: str) -> Iterator[bytes]:
    """The pieces of `text` across which nothing merges, as UTF-8; a lone surrogate becomes a question mark."""
    for match in _WORD.finditer(text):
        yield match.group().encode("utf-8", "replace")


class Tokenizer:
    """Text to ids and back. `merges` are pairs of ids; the merge at position i makes the id 260 + i.

    Raises ValueError when a merge names an id that does not stand before it, or a role.
    """

    def __init__(self, merges: Sequence[tuple[int, int]]) -> None:
        self.merges = tuple(merges)
        self.pieces: list[bytes] = [bytes([value]) for value in range(256)]
        self.pieces += [f"<|{role}|>".encode() for role in ROLES]
        for pair in self.merges:
            if any(not 0 <= part < len(self.pieces) or SYSTEM <= part <= END for part in pair):
                raise ValueError(f"merge {len(self.pieces)} joins {pair}, which are not both earlier pieces of text")
            self.pieces.append(self.pieces[pair[0]] + self.pieces[pair[1]])
        self._rank = {pair: rank for rank, pair in enumerate(self.merges)}
        self._known: dict[bytes, list[int]] = {}

    @classmethod
    def load(cls, path: Path = FILE) -> Tokenizer:
        """The tokenizer that was saved at `path`; without one, that of the committed weights."""
        return cls([(left, right) for left, right in json.loads(path.read_text(encoding="utf-8"))["merges"]])

    def save(self, path: Path, recipe: str = "") -> None:
        """Write the merges as JSON, with the commit of the recipe that made them."""
        kept = {"recipe": recipe, "merges": self.merges}
        path.write_text(json.dumps(kept, separators=(",", ":")) + "\n", encoding="utf-8")

    def __len__(self) -> int:
        return len(self.pieces)

    def encode(self, text: str) -> list[int]:
        """Ids of `text`. Roles written out as text ("<|end|>") stay text: only `chat` makes roles."""
        ids: list[int] = []
        for word in words(text):
            ids += self._word(word)
        return ids

    def chat(self, messages: Iterable[tuple[str, str]], answer: bool = True) -> list[int]:
        """Ids of (role, text) messages, those of the assistant closed by END; with `answer` its next turn is opened.

        Raises KeyError for a role other than system, user, assistant.
        """
        speaks = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}
        ids: list[int] = []
        for role, text in messages:
            ids += [speaks[role], *self.encode(text)]
            if role == "assistant":
                ids.append(END)
        return [*ids, ASSISTANT] if answer else ids

    def decode(self, ids: Iterable[int]) -> str:
        """Text of all of `ids`, roles left out; bytes that are no UTF-8 become replacement characters."""
        return b"".join(self.pieces[token] for token in ids if not SYSTEM <= token <= END).decode("utf-8", "replace")

    def piece(self, token: int) -> str:
        """How one id alone is shown: roles as <|end|>, a part of a character as a replacement character."""
        return self.pieces[token].decode("utf-8", "replace")

    def stream(self) -> Stream:
        """A decoder for ids that come one by one."""
        return Stream(self)

    def _word(self, word: bytes) -> list[int]:
        known = self._known.get(word)
        if known is None:
            known = list(word)
            while len(known) > 1:
                ranks = [(self._rank.get(pair, len(self.merges)), at) for at, pair in enumerate(pairwise(known))]
                rank, at = min(ranks)
                if rank == len(self.merges):
                    break
                known[at : at + 2] = [FIRST_MERGE + rank]
            if len(self._known) >= _LONGEST_CACHE:
                self._known.clear()
            self._known[word] = known
        return known


class Stream:
    """Decodes ids as they arrive, holding back the bytes of a character that is not complete yet."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._pieces = tokenizer.pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that `token` completes, maybe empty; roles give none."""
        return "" if SYSTEM <= token <= END else self._decoder.decode(self._pieces[token])

    def finish(self) -> str:
        """What was held back, as replacement characters; the stream can be used again."""
        return self._decoder.decode(b"", final=True)


def train(texts: Iterable[str], entries: int = ENTRIES) -> Tokenizer:
    """Learn merges from `texts` until there are `entries` ids, or until no pair occurs twice.

    The most frequent pair merges first; of equally frequent ones the one with the larger ids. So the same text gives
    the same merges.
    """
    counts = Counter(word for text in texts for word in words(text))
    spelled = [(list(word), count) for word, count in counts.items()]
    pairs: Counter[tuple[int, int]] = Counter()
    holders: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for at, (ids, count) in enumerate(spelled):
        for pair in pairwise(ids):
            pairs[pair] += count
            holders[pair].add(at)
    merges: list[tuple[int, int]] = []
    while FIRST_MERGE + len(merges) < entries and pairs:
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        if pairs[best] < 2:
            break
        new = FIRST_MERGE + len(merges)
        merges.append(best)
        for at in holders.pop(best):
            ids, count = spelled[at]
            for pair in pairwise(ids):
                pairs[pair] -= count
            _join(ids, best, new)
            for pair in pairwise(ids):
                pairs[pair] += count
                holders[pair].add(at)
        pairs.pop(best, None)
    return Tokenizer(merges)


def _join(ids: list[int], pair: tuple[int, int], new: int) -> None:
    at = 0
    while at < len(ids) - 1:
        if (ids[at], ids[at + 1]) == pair:
            ids[at : at + 2] = [new]
        at += 1
