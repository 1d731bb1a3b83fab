"""What a pass costs by how many tokens it computes: a straight line through those that were measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SPREAD = 0.1
"""Tokens tell what one more costs where their standard deviation is at least this share of how far one looks."""
_SURE = 2.0
_BLOCKS = 20


@dataclass(frozen=True)
class PassCost:
    """Time of a pass, ns: `fixed` and `per_token`, by least squares over `count` measured ones; neither is negative.

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
        slope = _slope(tokens.astype(np.float64), length.astype(np.float64))
        return cls._through_the_middle(tokens, length, slope)

    @classmethod
    def bounds(
        cls, tokens: npt.NDArray[np.integer], length: npt.NDArray[np.integer], reach: float
    ) -> tuple[PassCost, PassCost]:
        """The least and the most that a token may cost, as lines through the middle of what was measured (one or more).

        They lie two standard errors apart from the fit. Where the tokens hardly differ, measured by `reach`, the tokens
        one looks away from them, or where no such line fits, all that is known is that nothing costs less than nothing.
        """
        x, y = tokens.astype(np.float64), length.astype(np.float64)
        most = float(y.mean()) / float(x.mean()) if x.any() else 0.0
        low, high = 0.0, most
        if float(x.std()) >= SPREAD * reach and float(x.std()) > 0:
            slope, error = _slope(x, y), _SURE * _error(x, y)
            if slope + error >= 0 and slope - error <= most:
                low, high = max(slope - error, 0.0), min(max(slope + error, 0.0), most)
        return cls._through_the_middle(tokens, length, low), cls._through_the_middle(tokens, length, high)

    @classmethod
    def _through_the_middle(
        cls, tokens: npt.NDArray[np.integer], length: npt.NDArray[np.integer], slope: float
    ) -> PassCost:
        middle, mean = float(tokens.mean()), float(length.mean())
        slope = min(max(slope, 0.0), mean / middle) if middle > 0 else 0.0
        return cls(max(mean - slope * middle, 0.0), slope, len(tokens))

    def at(self, tokens: float) -> float:
        """Time of a pass over so many tokens, ns."""
        return self.fixed + self.per_token * tokens

    def of(self, tokens: int) -> int:
        """The same in whole ns."""
        return round(self.at(tokens))


def _slope(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    across = float(((x - x.mean()) ** 2).sum())
    return float(((x - x.mean()) * (y - y.mean())).sum()) / across if across else 0.0


def _error(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    """Standard error of the slope: the larger of what single passes say, and what stretches of them say, since what
    else the machine did slows passes that follow each other.
    """
    away = x - x.mean()
    across = float((away**2).sum())
    left = y - y.mean() - _slope(x, y) * away
    if len(x) <= 2:
        return float("inf")
    alone = float((left**2).sum()) / (len(x) - 2) / across
    cuts = np.arange(min(_BLOCKS, len(x))) * len(x) // min(_BLOCKS, len(x))
    together = float((np.add.reduceat(away * left, cuts) ** 2).sum()) / across**2
    return float(np.sqrt(max(alone, together)))
