"""Interned names: every text of a trace once, and integer ids everywhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt


class Names:
    """Grows only; an id stays valid for the life of the trace."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[str] = []
        self._ids: dict[str, int] = {}
        for text in texts:
            self.add(text)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, name: int) -> str:
        """The text of id `name`; '' for -1."""
        return self._texts[name] if name >= 0 else ""

    @property
    def texts(self) -> Sequence[str]:
        """All texts by id."""
        return self._texts

    def add(self, text: str) -> int:
        """The id of `text`, new if needed."""
        name = self._ids.get(text)
        if name is None:
            name = self._ids[text] = len(self._texts)
            self._texts.append(text)
        return name

    def add_all(self, texts: Iterable[str]) -> npt.NDArray[np.int32]:
        """Ids of `texts`, int32, in order."""
        return np.fromiter((self.add(text) for text in texts), np.int32)

    def find(self, text: str) -> int:
        """The id of `text`, -1 when the trace has no such name."""
        return self._ids.get(text, -1)
