"""The page map: one cell per page, painted as one image; a click selects the page and who holds it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QScrollBar, QWidget

from inspector.analysis.page_replay import USED
from inspector.picture.page_map import Cells, MapLayout, Mask, map_pixels
from inspector.picture.palette import Theme as Scheme
from inspector.picture.palette import text_on
from ui import raster
from ui.pages.moment import Moment, host_lines, page_lines
from ui.theme import Theme
from ui.widgets.hint import show_hint
from ui.widgets.wheel import read_wheel

_LARGEST_CELL = 64
_A_NOTCH = 1.19
_SMALLER = 0.82


class PageMapCanvas(QWidget):
    """`picked(page)` when a device page is clicked or reached by the arrow keys, -1 for none; `entered(page)` on
    Return. Ctrl + wheel, + and - make cells larger or smaller; 0 fits them again.
    """

    picked = Signal(int)
    entered = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: Moment | None = None
        self._cell = 0
        self._selected = -1
        self._turned = 1.0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAccessibleName("Page map")
        self._bar = QScrollBar(Qt.Orientation.Vertical, self)
        self._bar.setAccessibleName("Scroll the page map")
        self._bar.valueChanged.connect(self.update)

    def sizeHint(self) -> QSize:
        """The place that there is decides."""
        return QSize(self._theme.px(480), self._theme.px(200))

    def minimumSizeHint(self) -> QSize:
        """Some rows."""
        return QSize(self._theme.px(160), self._theme.px(48))

    @property
    def cell(self) -> float:
        """How large a cell is, in the units of the screen."""
        return self.layout_of_device().cell / self.devicePixelRatioF()

    def show_moment(self, shown: Moment, selected: int) -> None:
        """Paint that; `selected` is a page or -1."""
        self._shown, self._selected = shown, selected
        counts = shown.pages.counts
        self.setAccessibleDescription(
            f"{counts.blocks:,} pages: {counts.used:,} in use, {counts.kept:,} cached, {counts.free:,} free"
            + (f", {counts.unknown:,} unknown" if counts.unknown else "")
        )
        self._measure()
        self.update()

    def layout_of_device(self) -> MapLayout:
        """Where the device pages lie, in device pixels."""
        ratio = self.devicePixelRatioF()
        width = round((self.width() - self._bar.sizeHint().width()) * ratio)
        height = round(self.height() * ratio)
        shown = self._shown
        if shown is None:
            return MapLayout.fitting(0, width, height, 1)
        host = len(shown.map.host)
        if self._cell:
            return MapLayout.fitting(len(shown.map.cells), width, height, self._cell)
        if not host:
            return MapLayout.fitting(len(shown.map.cells), width, height)
        # Host pages stand below in cells of the same size.
        room = height - round(self._caption() * ratio)
        fitted = MapLayout.fitting(len(shown.map.cells) + host, width, room)
        while fitted.cell > 1:
            both = MapLayout(len(shown.map.cells), fitted.cell, fitted.columns)
            if both.height + MapLayout(host, fitted.cell, fitted.columns).height <= room:
                break
            fitted = MapLayout.fitting(fitted.count, width, room, fitted.cell - 1)
        return MapLayout(len(shown.map.cells), fitted.cell, fitted.columns)

    def layout_of_host(self) -> MapLayout:
        """Where the host pages lie, below a caption under the device pages."""
        device = self.layout_of_device()
        return MapLayout(len(self._shown.map.host) if self._shown is not None else 0, device.cell, device.columns)

    def page_at(self, place: QPoint) -> tuple[int, bool]:
        """The page at a place and whether it is a host page; -1 none."""
        ratio = self.devicePixelRatioF()
        device = self.layout_of_device()
        x, y = place.x() * ratio, place.y() * ratio + self._bar.value()
        if y < device.height or self._shown is None:
            return device.at(x, y), False
        return self.layout_of_host().at(x, y - device.height - self._caption() * ratio), True

    def place_of(self, page: int) -> QPoint:
        """The middle of a device page's cell."""
        ratio, layout = self.devicePixelRatioF(), self.layout_of_device()
        left, top = layout.place(page)
        half = layout.cell / 2
        return QPoint(int((left + half) / ratio), int((top + half - self._bar.value()) / ratio))

    def zoom(self, factor: float, y: float | None = None) -> None:
        """Larger or smaller cells, by one pixel at least; the page at `y`, or in the middle, stays there."""
        before = self.layout_of_device()
        down = (self.height() / 2 if y is None else y) * self.devicePixelRatioF()
        there = (self._bar.value() + down) / before.cell * before.columns
        cell = round(before.cell * factor)
        cell = max(cell, before.cell + 1) if factor > 1 else min(cell, before.cell - 1)
        cell = min(max(cell, 1), _LARGEST_CELL)
        self._cell = 0 if factor < 1 and cell <= self._fitted() else cell
        self._measure()
        after = self.layout_of_device()
        self._bar.setValue(round(there / after.columns * after.cell - down))
        self.update()

    def fit(self) -> None:
        """All pages in view, as far as a pixel each does."""
        self._cell = 0
        self._measure()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The cells in view, the selected request's in full colour, the selected page with an edge."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("surface"))
        if self._shown is None:
            return
        shown, ratio = self._shown, self.devicePixelRatioF()
        device, host = self.layout_of_device(), self.layout_of_host()
        top = self._bar.value()
        self._paint(painter, shown.map.cells, device, -top, shown.mine)
        if host.count:
            below = device.height - top
            painter.setFont(self._theme.font("small"))
            painter.setPen(self._theme.color("muted"))
            box = QRectF(0, below / ratio, self.width(), self._caption())
            painter.drawText(box, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), "in host memory")
            quiet = None if shown.mine is None else np.zeros(host.count, bool)
            self._paint(painter, shown.map.host, host, below + round(self._caption() * ratio), quiet)
        self._label(painter, device, top)
        if 0 <= self._selected < device.count:
            left, above = device.place(self._selected)
            box = QRectF(left / ratio, (above - top) / ratio, device.cell / ratio, device.cell / ratio)
            room = max(self._theme.px(7) - box.width(), 0) / 2
            painter.setPen(QPen(self._theme.color("text"), self._theme.px(2)))
            painter.drawRect(box.adjusted(-1 - room, -1 - room, room, room))
        if self.hasFocus():
            painter.setPen(QPen(self._theme.color("accent"), 1))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _paint(self, painter: QPainter, cells: Cells, layout: MapLayout, top: int, bright: Mask | None) -> None:
        shown, ratio = self._shown, self.devicePixelRatioF()
        if shown is None or not layout.count:
            return
        low = max(-top // layout.cell, 0)
        high = max(-(-(round(self.height() * ratio) - top) // layout.cell), 0)
        surface = self._theme.tokens.surface
        pixels = map_pixels(cells, shown.map.inks, layout, _scheme(self._theme), surface, (low, high), bright)
        if pixels.size:
            height, width = pixels.shape
            place = QRectF(0, (top + low * layout.cell) / ratio, width / ratio, height / ratio)
            raster.paint(painter, place, pixels)

    def _label(self, painter: QPainter, layout: MapLayout, top: int) -> None:
        """The number of the request, or of holders where there are several, in cells that have room for it."""
        shown, ratio = self._shown, self.devicePixelRatioF()
        size = layout.cell / ratio
        font = self._theme.font("small")
        if shown is None or shown.map.by != "request" or size < font.pixelSize() * 1.7:
            return
        small = QFont(font)
        small.setPixelSize(max(round(font.pixelSize() * _SMALLER), 8))
        fonts = [(each, QFontMetricsF(each)) for each in (font, small)]
        ids = shown.trace["requests"]["request"]
        low = top // layout.cell * layout.columns
        high = low + (round(self.height() * ratio) // layout.cell + 2) * layout.columns
        for page in np.flatnonzero(shown.pages.status[low:high] == USED).tolist():
            row = int(shown.pages.owner[low + page])
            bright = shown.mine is None or bool(shown.mine[low + page])
            if row < 0 or not bright:
                continue
            holders = int(shown.pages.refs[low + page])
            name = f"{int(ids[row])}"
            # Requests that run together differ in their last digits.
            texts = (name, f"‥{name[-2:]}") if holders == 1 else (f"×{holders}", "9+" if holders > 9 else "")
            left, above = layout.place(low + page)
            box = QRectF(left / ratio, (above - top) / ratio, size - 1, size - 1)
            text, fitting = _fitting(texts, box.width() - 1, fonts)
            if text:
                painter.setFont(fitting)
                ink = shown.map.inks[int(shown.map.cells[low + page])]
                painter.setPen(QColor(text_on(ink.colour(_scheme(self._theme)))))
                painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), text)

    def _fitted(self) -> int:
        cell, self._cell = self._cell, 0
        fitted = self.layout_of_device().cell
        self._cell = cell
        return fitted

    def _caption(self) -> int:
        return self._theme.px(20)

    def _measure(self) -> None:
        ratio = self.devicePixelRatioF()
        device, host = self.layout_of_device(), self.layout_of_host()
        total = device.height + (host.height + round(self._caption() * ratio) if host.count else 0)
        room = round(self.height() * ratio)
        bar = self._bar.sizeHint().width()
        self._bar.setGeometry(self.width() - bar, 0, bar, self.height())
        self._bar.setRange(0, max(total - room, 0))
        self._bar.setPageStep(max(room, 1))
        self._bar.setSingleStep(max(device.cell, 1) * 3)
        self._bar.setVisible(total > room)

    def _move(self, page: int) -> None:
        layout = self.layout_of_device()
        if not 0 <= page < layout.count:
            return
        top, room = layout.place(page)[1], round(self.height() * self.devicePixelRatioF())
        if top < self._bar.value():
            self._bar.setValue(top)
        elif top + layout.cell > self._bar.value() + room:
            self._bar.setValue(top + layout.cell - room)
        self.picked.emit(page)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other cells fit."""
        self._measure()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows go from page to page, + and - zoom."""
        columns = self.layout_of_device().columns
        keys = Qt.Key
        steps = {keys.Key_Left: -1, keys.Key_Right: 1, keys.Key_Up: -columns, keys.Key_Down: columns}
        key = Qt.Key(event.key())
        if key in steps:
            self._move(max(self._selected, 0) + steps[key] if self._selected >= 0 else 0)
        elif key in (keys.Key_Return, keys.Key_Enter) and self._selected >= 0:
            self.entered.emit(self._selected)
        elif key in (keys.Key_Plus, keys.Key_Equal):
            self.zoom(1.3)
        elif key == keys.Key_Minus:
            self.zoom(1 / 1.3)
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll, with Ctrl zoom at the pointer."""
        turn = read_wheel(event)
        if turn.kind == "zoom":
            # A touchpad turns in steps of which one alone changes no cell.
            self._turned /= turn.amount
            if self._turned >= _A_NOTCH or self._turned <= 1 / _A_NOTCH:
                self.zoom(self._turned, event.position().y())
                self._turned = 1.0
        elif turn.kind == "scroll":
            self._bar.setValue(self._bar.value() + round(turn.amount * self.devicePixelRatioF()))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select what is there."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.setFocus(Qt.FocusReason.MouseFocusReason)
            page, host = self.page_at(event.position().toPoint())
            self.picked.emit(-1 if host else page)
            if page >= 0 and not host:
                self.entered.emit(page)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Say what is there."""
        place = event.position().toPoint()
        show_hint(self, place, self.hint(place))

    def leaveEvent(self, event: QEvent) -> None:
        """Say nothing."""
        show_hint(self, QPoint(), ())

    def hint(self, place: QPoint) -> list[tuple[str, str]]:
        """What the box beside the pointer says there."""
        page, host = self.page_at(place)
        if self._shown is None or page < 0:
            return []
        return host_lines(self._shown, page) if host else page_lines(self._shown, page)


def _fitting(texts: Sequence[str], room: float, fonts: Sequence[tuple[QFont, QFontMetricsF]]) -> tuple[str, QFont]:
    """The first of `texts` that has room, in the largest of the fonts that lets it; '' for none."""
    for text in texts:
        for font, metrics in fonts:
            if metrics.horizontalAdvance(text) <= room:
                return text, font
    return "", fonts[0][0]


def _scheme(theme: Theme) -> Scheme:
    return "dark" if theme.dark else "light"
