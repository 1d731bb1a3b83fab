"""Below the tracks: all that is known of the selected record, or what the selected range holds."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from inspector import units
from inspector.analysis.categories import CATEGORIES
from inspector.analysis.causes import CAUSES
from inspector.picture.details import Details, Fact, RangeStatistics
from inspector.picture.labels import short
from inspector.picture.palette import category_ink, cause_ink
from inspector.picture.palette import ink as ink_named
from ui.export import Cell, Rows
from ui.inks import fill
from ui.theme import GRID, Theme

HEIGHT = 168
_ROOM_FOR_HINT = 560
_LEAST = 48
_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine)
_WRAPPED = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap)
# Facts that are sentences: they have no label and stand above the others.
_SENTENCES = ("why", "return latency")
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine)


class Panel(QWidget):
    """`named(name id)` when a kernel's line is clicked."""

    named = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shown: Details | RangeStatistics | None = None
        self._most = theme.px(HEIGHT)
        self._wanted = self._hint = True
        self._lines: list[tuple[QRectF, int, str]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        self.setAccessibleName("Details of the selection")
        theme.changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        """High enough for what it shows, no higher than its share of the room; a line while it shows nothing."""
        return QSize(600, min(self._theme.px(HEIGHT), self._most) if self._shown is not None else self._theme.px(28))

    def set_room(self, height: int, needed: int) -> None:
        """Take no more than a share of a view of that height, of which others need so much first, and nothing for a
        hint where there is little.
        """
        self._most = min(max(height * 2 // 5, self._theme.px(88)), height - needed)
        self._hint = height >= self._theme.px(_ROOM_FOR_HINT)
        self._shape()

    def _shape(self) -> None:
        fits = self._most >= self._theme.px(_LEAST)
        self.setVisible(self._wanted and ((self._shown is not None and fits) or self._hint))
        self.updateGeometry()

    def toggle(self) -> None:
        """Show or hide it, whatever it has to show."""
        self._wanted = not self._wanted
        self._shape()

    def show_answer(self, shown: Details | RangeStatistics | None) -> None:
        """Show details of a record, statistics of a range, or the sentence that says how to get them."""
        self._shown = shown
        self._shape()
        rows = self.rows()
        self.setAccessibleDescription("" if rows is None else rows.text(" "))
        self.update()

    def rows(self) -> Rows | None:
        """What is shown, as exact numbers."""
        shown = self._shown
        if isinstance(shown, Details):
            facts: list[tuple[Cell, ...]] = [(fact.label, fact.exact or fact.text) for fact in shown.facts]
            return Rows(("what", "value"), [("name", shown.title), ("kind", shown.kind), *facts])
        if isinstance(shown, RangeStatistics):
            lines: list[tuple[Cell, ...]] = [
                ("range", "", shown.window.length, None),
                ("busy", shown.name, shown.busy.busy_ns, shown.busy.work),
                ("idle", shown.name, shown.busy.idle_ns, shown.busy.gaps),
                *(("idle by cause", cause, time, None) for cause, time in shown.idle.items()),
                *(("kernel", row.name, row.total_ns, row.count) for row in shown.kernels),
            ]
            return Rows(("what", "name", "ns", "count"), lines)
        return None

    def paintEvent(self, event: QPaintEvent) -> None:
        """Details in columns, or figures beside bars."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theme.tokens.surface))
        painter.setPen(QColor(self._theme.tokens.edge))
        painter.drawLine(QPointF(0, 0.5), QPointF(self.width(), 0.5))
        self._lines = []
        if isinstance(self._shown, Details):
            self._details(painter, self._shown)
        elif isinstance(self._shown, RangeStatistics):
            self._range(painter, self._shown)
        else:
            painter.setPen(QColor(self._theme.tokens.muted))
            text = "Click a record for its details, or drag over a range for what it holds."
            painter.drawText(QRectF(self.rect()), int(Qt.AlignmentFlag.AlignCenter), text)
        painter.end()

    def _title(self, painter: QPainter, title: str, note: str) -> float:
        pad = self._theme.px(GRID * 1.5)
        strong = self._theme.font("strong")
        painter.setFont(strong)
        metrics = QFontMetricsF(strong)
        painter.setPen(QColor(self._theme.tokens.text))
        small = self._theme.font("small")
        beside = QFontMetricsF(small).horizontalAdvance(note) + pad
        shown = metrics.elidedText(title, Qt.TextElideMode.ElideMiddle, self.width() - 2 * pad - beside)
        painter.drawText(QPointF(pad, pad + metrics.ascent()), shown)
        painter.setFont(small)
        painter.setPen(QColor(self._theme.tokens.muted))
        painter.drawText(QPointF(pad * 2 + metrics.horizontalAdvance(shown), pad + metrics.ascent()), note)
        return pad + metrics.height() + self._theme.px(GRID / 2)

    def _details(self, painter: QPainter, details: Details) -> None:
        top = self._title(painter, details.title, details.kind)
        metrics = QFontMetricsF(painter.font())
        line = metrics.height() + self._theme.px(3)
        top = self._sentences(painter, [fact for fact in details.facts if fact.label in _SENTENCES], top)
        short = [fact for fact in details.facts if fact.label not in _SENTENCES]
        per_column = max(int((self.height() - top - self._theme.px(6)) // line), 1)
        x: float = self._theme.px(GRID * 1.5)
        for first in range(0, len(short), per_column):
            facts = short[first : first + per_column]
            labels = max(metrics.horizontalAdvance(fact.label) for fact in facts) + self._theme.px(12)
            texts = [fact.text + (f"   {fact.exact}" if fact.exact else "") for fact in facts]
            room = max(metrics.horizontalAdvance(text) for text in texts) + 4
            if first + per_column < len(short):
                room = min(room, self._theme.px(560))
            room = min(room, max(self.width() - x - labels - 8, 40))
            for at, fact in enumerate(facts):
                y = top + at * line
                painter.setPen(QColor(self._theme.tokens.muted))
                painter.drawText(QRectF(x, y, labels, line), _LEFT, fact.label)
                painter.setPen(QColor(self._theme.tokens.text))
                main = metrics.elidedText(fact.text, Qt.TextElideMode.ElideRight, room)
                painter.drawText(QRectF(x + labels, y, room, line), _LEFT, main)
                if fact.exact:
                    after = metrics.horizontalAdvance(main + "   ")
                    painter.setPen(QColor(self._theme.tokens.muted))
                    exact = metrics.elidedText(fact.exact, Qt.TextElideMode.ElideRight, room - after)
                    painter.drawText(QRectF(x + labels + after, y, room - after, line), _LEFT, exact)
            x += labels + room + self._theme.px(28)

    def _sentences(self, painter: QPainter, facts: list[Fact], top: float) -> float:
        """Sentences below the title over the whole width, in as many lines as they need; where the next thing goes."""
        pad = self._theme.px(GRID * 1.5)
        metrics = QFontMetricsF(painter.font())
        for fact in facts:
            room = QRectF(pad, top, self.width() - 2 * pad, self.height() - top)
            high = metrics.boundingRect(room, _WRAPPED, fact.text).height()
            painter.setPen(QColor(self._theme.tokens.text))
            painter.drawText(room, _WRAPPED, fact.text)
            top += high + self._theme.px(3)
        return top

    def _range(self, painter: QPainter, found: RangeStatistics) -> None:
        span = found.busy.span_ns
        top = self._title(painter, f"Range of {units.time(found.window.length)}", found.name)
        pad = self._theme.px(GRID * 1.5)
        # Below each other, or side by side where the panel is low.
        step, low = self._theme.px(56), self.height() - top < self._theme.px(112)
        column = self._theme.px(270 if low else 150)
        self._figure(painter, pad, top, units.share(found.busy.busy_ns, span), f"busy {units.time(found.busy.busy_ns)}")
        idle = f"idle in {units.exact(found.busy.gaps)} gaps"
        x, y = (pad + column / 2, top) if low else (pad, top + step)
        self._figure(painter, x, y, units.time(found.busy.idle_ns), idle)
        room = self.width() - column - 3 * pad
        causes = [
            (cause, time, units.share(time, found.busy.idle_ns), cause_ink(CAUSES.index(cause)), -1)
            for cause, time in found.idle.items()
        ]
        width = min(room * 0.38, self._theme.px(380))
        self._bars(painter, "Idle by cause", causes, QRectF(column + pad, top, width, self.height() - top))
        named = [
            (
                row.name,
                row.total_ns,
                f"{units.exact(row.count)} ×",
                ink_named("whole graph") if row.kind == "graph" else category_ink(CATEGORIES.index(row.category)),
                row.name_id,
            )
            for row in found.kernels
        ]
        left = column + 2 * pad + width
        area = QRectF(left, top, self.width() - left - pad, self.height() - top)
        self._bars(painter, "Work by time", named, area)

    def _figure(self, painter: QPainter, x: float, y: float, figure: str, text: str) -> None:
        big, small = self._theme.font("figure"), self._theme.font("small")
        metrics = QFontMetricsF(big)
        painter.setFont(big)
        painter.setPen(QColor(self._theme.tokens.text))
        painter.drawText(QPointF(x, y + metrics.ascent()), figure)
        painter.setFont(small)
        painter.setPen(QColor(self._theme.tokens.muted))
        painter.drawText(QPointF(x, y + metrics.height() + QFontMetricsF(small).ascent()), text)

    def _bars(self, painter: QPainter, title: str, bars: list[tuple[str, int, str, int, int]], area: QRectF) -> None:
        """Bars of (text, ns, beside, ink, name id), as many as fit; the last line says how many do not."""
        tokens, small = self._theme.tokens, self._theme.font("small")
        painter.setFont(small)
        metrics = QFontMetricsF(small)
        line = metrics.height() + self._theme.px(2)
        painter.setPen(QColor(tokens.muted))
        painter.drawText(QRectF(area.left(), area.top(), area.width(), line), _LEFT, title)
        fits = max(int((area.height() - self._theme.px(4)) // line) - 1, 1)
        shown = bars[: fits if len(bars) <= fits else fits - 1]
        most = max((time for _, time, *_ in bars), default=0) or 1
        numbers = self._theme.px(68)
        bar = area.width() * 0.3
        names = max(area.width() - bar - 2 * numbers - self._theme.px(20), self._theme.px(60))
        for at, (text, time, beside, ink, name) in enumerate(shown):
            y = area.top() + line * (at + 1)
            place = QRectF(area.left(), y, area.width(), line)
            if name >= 0:
                self._lines.append((place, name, text))
            chosen = metrics.elidedText(short(text), Qt.TextElideMode.ElideMiddle, names - 4)
            painter.setPen(QColor(tokens.text))
            painter.drawText(QRectF(area.left(), y, names, line), _LEFT, chosen)
            box = QRectF(area.left() + names, y + 2, max(bar * time / most, 2), line - 4)
            fill(painter, box, ink, self._theme)
            x = area.left() + names + bar + self._theme.px(4)
            painter.setPen(QColor(tokens.text))
            painter.drawText(QRectF(x, y, numbers, line), _RIGHT, units.time(time))
            painter.setPen(QColor(tokens.muted))
            painter.drawText(QRectF(x + numbers, y, numbers, line), _RIGHT, beside)
        painter.setPen(QColor(tokens.muted))
        rest = bars[len(shown) :]
        if rest:
            y = area.top() + line * (len(shown) + 1)
            text = f"{len(rest)} more, {units.time(sum(time for _, time, *_ in rest))} together"
            painter.drawText(QRectF(area.left(), y, area.width(), line), _LEFT, text)
        elif not bars:
            painter.drawText(QRectF(area.left(), area.top() + line, area.width(), line), _LEFT, "none")

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The whole name as a tool tip, and a hand where a click leads on."""
        found = next((line for line in self._lines if line[0].contains(event.position())), None)
        self.setToolTip("" if found is None else found[2])
        self.setCursor(Qt.CursorShape.ArrowCursor if found is None else Qt.CursorShape.PointingHandCursor)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A kernel's line selects its name everywhere."""
        for place, name, _ in self._lines:
            if place.contains(event.position()):
                self.named.emit(name)
                return
