"""What a pass costs by how many tokens it computes: a straight line through those that were measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class PassCost:
    """Time of a pass, ns: `fixed` and `per_token`, by least squares over `count` measured ones.

    Where their tokens hardly differ, or more tokens took no longer, `per_token` is 0 and `fixed` the mean.
    """

    fixed: float
    per_token: float
    count: int

    @classmethod
    def fit(cls, tokens: npt.NDArray[np.integer], length: npt.NDArray[np.integer]) -> PassCost | None:
        """From tokens and lengths (ns) of passes; None without any."""
        if not len(tokens):
            return None
        x, y = tokens.astype(np.float64), length.astype(np.float64)
        middle, mean = float(x.mean()), float(y.mean())
        across = float(((x - middle) ** 2).sum())
        slope = float(((x - middle) * (y - mean)).sum()) / across if across else 0.0
        fixed = mean - slope * middle
        return cls(mean, 0.0, len(x)) if slope <= 0 or fixed < 0 else cls(fixed, slope, len(x))

    def at(self, tokens: float) -> float:
        """Time of a pass over so many tokens, ns."""
        return self.fixed + self.per_token * tokens

    def of(self, tokens: int) -> int:
        """The same in whole ns."""
        return round(self.at(tokens))
