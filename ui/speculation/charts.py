"""Acceptance over time, acceptance by draft position, and what each draft length would bring."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from inspector import units
from inspector.analysis.draft_length import Estimate, NoCost
from inspector.picture.palette import ink
from inspector.picture.speculation import SpeculationPicture
from inspector.trace.selection import Window
from ui.inks import color_of, fill
from ui.speculation.chart import Chart, group_ink, line_style, shown_groups
from ui.widgets.ruler import ticks

_SHARES = [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")]
_NOTHING_DRAFTED = "Nothing was drafted here"


class OverTimeChart(Chart):
    """Accepted / drafted per stretch of time; bars below it say how much was drafted."""

    title = "Acceptance over time"
    basis = "measured"

    def headings(self) -> tuple[str, ...]:
        """With what the ground is."""
        short = f"{self.title} · {self.basis}"
        return (
            f"{short}; grey: how many tokens were drafted",
            f"{short}; grey: drafted",
            f"Acceptance · {self.basis}; grey: drafted",
        )

    def words(self) -> str:
        """From when to when, and how much."""
        picture = self.picture
        if picture is None or not picture.drafted:
            return _NOTHING_DRAFTED
        return (
            f"{picture.accepted:,} of {picture.drafted:,} draft tokens accepted over {units.time(picture.span.length)}"
        )

    def paint_data(self, painter: QPainter, area: QRectF, picture: SpeculationPicture) -> None:
        """A line that breaks where nothing was drafted."""
        found, theme = picture.over_time, self.theme
        if not picture.drafted:
            self.say(painter, area, _NOTHING_DRAFTED)
            return
        self.scale(painter, area, _SHARES)
        step = area.width() / max(len(found.drafted), 1)
        most = int(found.drafted.max(initial=1))
        painter.setPen(Qt.PenStyle.NoPen)
        for at in np.flatnonzero(found.drafted > 0).tolist():
            height = area.height() * 0.25 * int(found.drafted[at]) / most
            bar = QRectF(area.left() + at * step, area.bottom() - height, max(step, 1), height)
            painter.fillRect(bar, theme.color("sunken"))
        painter.setPen(QPen(color_of(ink("accepted"), theme), theme.px(1.6)))
        points: list[QPointF] = []
        for at, (drafted, accepted) in enumerate(zip(found.drafted.tolist(), found.accepted.tolist(), strict=True)):
            if drafted:
                y = area.bottom() - area.height() * accepted / drafted
                points += [QPointF(area.left() + at * step, y), QPointF(area.left() + (at + 1) * step, y)]
            elif points:
                painter.drawPolyline(QPolygonF(points))
                points = []
        if points:
            painter.drawPolyline(QPolygonF(points))
        marks = ticks(picture.span, round(area.width()), theme.px(72))
        for time, text in marks.major:
            x = area.left() + (time - picture.span.start) * area.width() / picture.span.length
            self.below(painter, area, x, text, theme.px(72))

    def lines_at(self, point: QPointF, area: QRectF, picture: SpeculationPicture) -> list[tuple[str, str]]:
        """Counts of the stretch."""
        found = picture.over_time
        if not area.contains(point) or not len(found.drafted):
            return []
        at = min(int((point.x() - area.left()) / area.width() * len(found.drafted)), len(found.drafted) - 1)
        drafted, accepted = int(found.drafted[at]), int(found.accepted[at])
        window = Window(int(found.edges[at]), int(found.edges[at + 1]))
        lines = [("from", f"{units.time(window.start)} to {units.time(window.end)}")]
        lines.append(("accepted", f"{accepted:,} of {drafted:,} ({units.share(accepted, drafted)})"))
        return [*lines, ("passes", f"{int(found.passes[at]):,}")] if found.passes[at] >= 0 else lines


class PositionChart(Chart):
    """Bars: of the passes that drafted a position, how many accepted it. Lines: of those that reached it."""

    title = "Acceptance by draft position"
    basis = "measured"

    def headings(self) -> tuple[str, ...]:
        """With what bars and line are."""
        short = f"{self.title} · {self.basis}"
        return (
            f"{short}: of all that drafted it (bars), of those that reached it (line)",
            f"By position · {self.basis}: of all (bars), of who reached it (line)",
            f"By position: of all (bars), of reached (line) · {self.basis}",
            f"By position · {self.basis}: bars all, line reached",
            short,
        )

    def words(self) -> str:
        """Position by position."""
        picture = self.picture
        if picture is None:
            return ""
        said = []
        for group in shown_groups(picture):
            by = group.positions
            parts = [
                f"{at + 1}: {units.share(int(taken), int(drafted))}"
                for at, (taken, drafted) in enumerate(zip(by.accepted, by.drafted, strict=True))
            ]
            said.append(f"{group.name or 'all requests'} {', '.join(parts)}")
        return "; ".join(said)

    def paint_data(self, painter: QPainter, area: QRectF, picture: SpeculationPicture) -> None:
        """Groups side by side at every position."""
        shown, px = shown_groups(picture), self.theme.px
        longest = max((group.counts.longest for group in shown), default=0)
        if not shown or not longest:
            why = "No steps of requests were recorded" if not shown else _NOTHING_DRAFTED
            self.say(painter, area, why)
            return
        self.scale(painter, area, _SHARES)
        slot = area.width() / longest
        width = min(slot * 0.7 / len(shown), px(36))
        for position in range(longest):
            middle = area.left() + (position + 0.5) * slot
            self.below(painter, area, middle, str(position + 1), slot)
            for at, group in enumerate(shown):
                by = group.positions
                if position >= len(by.drafted) or not by.drafted[position]:
                    continue
                height = area.height() * int(by.accepted[position]) / int(by.drafted[position])
                left = middle + (at - len(shown) / 2) * width
                bar = QRectF(left, area.bottom() - height, width - 1, height)
                fill(painter, bar, group_ink(group, at), self.theme)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for at, group in enumerate(shown):
            by = group.positions
            points = [
                QPointF(
                    area.left() + (position + 0.5) * slot + (at - len(shown) / 2 + 0.5) * width,
                    area.bottom() - area.height() * int(by.accepted[position]) / int(by.reached[position]),
                )
                for position in range(len(by.reached))
                if by.reached[position]
            ]
            painter.setPen(QPen(self.theme.color("text"), px(1.3), line_style(at)))
            painter.setBrush(self.theme.color("surface"))
            painter.drawPolyline(QPolygonF(points))
            for point in points:
                painter.drawEllipse(point, px(2.5), px(2.5))

    def lines_at(self, point: QPointF, area: QRectF, picture: SpeculationPicture) -> list[tuple[str, str]]:
        """Counts of a position."""
        shown = shown_groups(picture)
        longest = max((group.counts.longest for group in shown), default=0)
        if not area.contains(point) or not longest:
            return []
        position = min(int((point.x() - area.left()) / area.width() * longest), longest - 1)
        lines = [("draft position", str(position + 1))]
        for group in shown:
            by = group.positions
            if position < len(by.drafted):
                taken, drafted, reached = (int(x[position]) for x in (by.accepted, by.drafted, by.reached))
                lines.append(
                    (
                        group.name or "accepted",
                        f"{taken:,} of {drafted:,} that drafted it ({units.share(taken, drafted)})",
                    )
                )
                lines.append(("", f"{taken:,} of {reached:,} that reached it ({units.share(taken, reached)})"))
        return lines


class LengthChart(Chart):
    """Speedup by draft length, the best one marked; tokens of a pass where the cost of passes is not known."""

    title = "Speedup by draft length"
    basis = "estimated"

    def headings(self) -> tuple[str, ...]:
        """What is drawn, and why not more."""
        picture = self.picture
        if picture is not None and picture.everything is not None and isinstance(picture.cost, NoCost):
            text = f"Tokens per pass by draft length · {self.basis}"
            return f"{text}; speedup unknown: {picture.cost.reason}", f"{text}; speedup unknown", text
        short = f"{self.title} · {self.basis}"
        groups = shown_groups(picture) if picture is not None else ()
        drafted = [group for group in groups if group.counts.drafted]
        untold = [group.name for group in drafted if group.estimate.doubtful]
        told = [group for group in drafted if not group.estimate.doubtful]
        best = ", ".join(f"{group.name} {_among_words(group.estimate)}".strip() for group in told)
        if untold:
            # Of all requests together it may be known all the same: they are more passes.
            whose = f" for {', '.join(untold)} alone" if untold[0] else ""
            known = f"best {best}; " if best else ""
            return (
                f"{short} range; {known}which is best{whose} {DOUBT}",
                f"{short} range; {known}best{whose} cannot be told",
                f"{known[:1].upper()}{known[1:]}best{whose} cannot be told · {self.basis}",
                f"{short} range",
            )
        return (
            f"{short} from measured acceptance and passes; best {best}",
            f"{short}; best {best}",
            f"Best {best} · {self.basis}",
            short,
        )

    def words(self) -> str:
        """The best lengths."""
        picture = self.picture
        if picture is None:
            return ""
        return "; ".join(
            f"{group.name or 'all requests'}: {best_words(group.estimate)}" for group in shown_groups(picture)
        )

    def paint_data(self, painter: QPainter, area: QRectF, picture: SpeculationPicture) -> None:
        """A line per group; dashed where it is extrapolated."""
        shown = [group for group in shown_groups(picture) if group.counts.drafted]
        if not shown:
            self.say(painter, area, _NOTHING_DRAFTED if picture.everything else "No steps of requests were recorded")
            return
        curves = [self._curve(group.estimate) for group in shown]
        longest = max(len(curve) for curve in curves) - 1
        ranges = [group.estimate.high for group in shown if np.isfinite(group.estimate.high).all()]
        top = max(float(curve.max()) for curve in (*curves, *ranges)) * 1.15
        unit = "×" if picture.cost is not None and not isinstance(picture.cost, NoCost) else ""
        marks = [(value / top, f"{value:g}{unit}") for value in _round_steps(top)]
        self.scale(painter, area, marks)
        slot = area.width() / (longest + 1)
        for length in range(longest + 1):
            self.below(painter, area, area.left() + (length + 0.5) * slot, str(length), slot)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for at, (group, curve) in enumerate(zip(shown, curves, strict=True)):
            points = [
                QPointF(area.left() + (length + 0.5) * slot, area.bottom() - area.height() * float(value) / top)
                for length, value in enumerate(curve)
            ]
            self._range(painter, area, group.estimate, top, self.color(group, at))
            # Where it cannot be told, one curve out of the range would say more than is known.
            if not group.estimate.doubtful:
                self._line(painter, points, group.estimate, self.color(group, at))
                self._ring(painter, points, group.estimate)

    def _range(self, painter: QPainter, area: QRectF, found: Estimate, top: float, color: QColor) -> None:
        """From the least to the highest speedup that the measured passes allow, as far as was drafted."""
        if not np.isfinite(found.low).all():
            return
        slot = area.width() / len(found.tokens)
        ends = [
            QPointF(area.left() + (length + 0.5) * slot, area.bottom() - area.height() * float(values[length]) / top)
            for values, order in ((found.low, range(found.seen + 1)), (found.high, range(found.seen, -1, -1)))
            for length in order
        ]
        color.setAlpha(60)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color)
        painter.drawPolygon(QPolygonF(ends))

    def _line(self, painter: QPainter, points: list[QPointF], found: Estimate, color: QColor) -> None:
        px = self.theme.px
        pen = QPen(color, px(1.8))
        painter.setPen(pen)
        painter.drawPolyline(QPolygonF(points[: found.seen + 1]))
        dashed = QPen(pen)
        dashed.setStyle(Qt.PenStyle.DotLine)
        painter.setPen(dashed)
        painter.drawPolyline(QPolygonF(points[found.seen :]))
        painter.setPen(pen)
        painter.setBrush(self.theme.color("surface"))
        for point in points:
            painter.drawEllipse(point, px(2.5), px(2.5))

    def _ring(self, painter: QPainter, points: list[QPointF], found: Estimate) -> None:
        if found.best >= 0:
            px = self.theme.px
            painter.setPen(QPen(self.theme.color("text"), px(1.6)))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(points[found.best], px(5.5), px(5.5))

    def lines_at(self, point: QPointF, area: QRectF, picture: SpeculationPicture) -> list[tuple[str, str]]:
        """Tokens, cost and speedup of a length."""
        shown = [group for group in shown_groups(picture) if group.counts.drafted]
        longest = max((len(group.estimate.tokens) for group in shown), default=0) - 1
        if not area.contains(point) or longest < 0:
            return []
        length = min(int((point.x() - area.left()) / area.width() * (longest + 1)), longest)
        lines = [("draft length", str(length))]
        for group in shown:
            found = group.estimate
            if length < len(found.tokens):
                text = f"{found.tokens[length]:.2f} tokens per pass"
                if np.isfinite(found.low[length]):
                    text += f", {_range_words(found, length)}"
                lines.append((group.name or "estimated", text + (", extrapolated" if length > found.seen else "")))
        if not isinstance(picture.cost, NoCost):
            lines.append(("cost of a pass", f"{units.time(picture.cost.cost(length))}, estimated"))
        return lines

    def _curve(self, found: Estimate) -> npt.NDArray[np.float64]:
        return found.speedup if np.isfinite(found.speedup).all() else found.tokens


DOUBT = "cannot be told, since the passes hardly differ in tokens: change the draft length while it runs"


def best_words(found: Estimate) -> str:
    """The best length in words, of those that were drafted."""
    if found.doubtful:
        return "cannot tell"
    if found.best < 0:
        return "not known"
    if not found.best:
        return "best without drafts"
    return f"best {_among_words(found)}, {speedup_words(found)}"


def speedup_words(found: Estimate) -> str:
    """The range of the speedup of the best length."""
    return _range_words(found, found.best)


def _among_words(found: Estimate) -> str:
    low, high = found.among
    return str(found.best) if low == high else f"{low} to {high}"


def _range_words(found: Estimate, length: int) -> str:
    low, high = f"{found.low[length]:.2f}", f"{found.high[length]:.2f}"
    return f"{low}×" if low == high else f"{low} to {high}×"


def _round_steps(top: float) -> list[float]:
    step = next(each for each in (0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if top / each <= 5)
    return [step * at for at in range(int(top / step) + 1)]
