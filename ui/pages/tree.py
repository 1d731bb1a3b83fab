"""The tree of prefixes: depth in pages to the right, ways through it from top to bottom, shared pages in strong ink."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from inspector.picture.palette import rgb
from inspector.picture.prefixes import INKS_OF_TREE, PrefixPicture
from ui import raster
from ui.theme import Theme
from ui.widgets.hint import show_hint

_WIDEST = 40
_TALLEST = 26


class PrefixCanvas(QWidget):
    """`picked(page)` when the device page of a node is clicked or reached by the arrow keys."""

    picked = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._picture: PrefixPicture | None = None
        self._selected = -1
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Tree of prefixes")

    def sizeHint(self) -> QSize:
        """The place that there is decides."""
        return QSize(self._theme.px(300), self._theme.px(120))

    def show_picture(self, picture: PrefixPicture | None, selected: int) -> None:
        """Paint that; `selected` is a device page or -1."""
        self._picture, self._selected = picture, selected
        if picture is not None:
            self.setAccessibleDescription(self.summary())
        self.update()

    def summary(self) -> str:
        """What it amounts to, in words."""
        picture = self._picture
        if picture is None or not len(picture.tree):
            return "no cached contents"
        shared = int(np.count_nonzero(picture.tree.sharing > 1))
        text = f"{len(picture.tree):,} contents in {picture.leaves:,} ways, {shared:,} shared, {picture.deepest:,} deep"
        if picture.lines < picture.leaves:
            text += f"; {picture.lines:,} ways drawn"
        if picture.columns < picture.deepest:
            text += f"; {picture.columns:,} deep drawn"
        if picture.tree.unnamed:
            text += f"; {picture.tree.unnamed:,} of unknown contents"
        return text

    def _scale(self) -> tuple[float, float]:
        """Pixels of one page to the right, and of one way down."""
        picture = self._picture
        if picture is None or not picture.lines:
            return 1.0, 1.0
        px = self._theme.px
        return (
            min(self.width() / picture.columns, px(_WIDEST)),
            min((self.height() - px(18)) / picture.lines, px(_TALLEST)),
        )

    def node_at(self, place: QPoint) -> int:
        """The row of the tree at a place; -1 none."""
        picture = self._picture
        if picture is None or not picture.lines:
            return -1
        across, down = self._scale()
        line, depth = int((place.y() - self._theme.px(18)) / max(down, 1e-9)), int(place.x() / max(across, 1e-9))
        inside = place.y() >= self._theme.px(18) and line < picture.lines and depth < picture.columns
        return int(picture.node[line, depth]) if inside else -1

    def paintEvent(self, event: QPaintEvent) -> None:
        """One image, with a line of ground between ways and pages where there is room."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("surface"))
        painter.setFont(self._theme.font("small"))
        painter.setPen(self._theme.color("muted"))
        flags = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        said = painter.fontMetrics().elidedText(self.summary(), Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), flags, said)
        if self._picture is not None and self._picture.lines:
            self._image(painter, self._picture)
        if self.hasFocus():
            painter.setPen(QPen(self._theme.color("accent"), 1))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _image(self, painter: QPainter, picture: PrefixPicture) -> None:
        ratio = self.devicePixelRatioF()
        across, down = self._scale()
        width = max(round(across * picture.columns * ratio), 1)
        height = max(round(down * picture.lines * ratio), 1)
        rows = np.minimum((np.arange(height) * picture.lines) // height, picture.lines - 1)
        columns = np.minimum((np.arange(width) * picture.columns) // width, picture.columns - 1)
        node = picture.node[rows[:, None], columns[None, :]]
        scheme = "dark" if self._theme.dark else "light"
        inks = [rgb(each.colour(scheme)) for each in INKS_OF_TREE]  # type: ignore[arg-type]
        inks.append(rgb(self._theme.tokens.surface))
        packed = np.array([0xFF000000 | red << 16 | green << 8 | blue for red, green, blue in inks], np.uint32)
        pixels = packed[np.where(node >= 0, np.append(picture.colour, 0)[node], len(inks) - 1)]
        ground = packed[-1]
        # Another way begins where the contents differ: what is shared stays one piece.
        if down * ratio >= 4:
            pixels[1:][node[1:] != node[:-1]] = ground
        if across * ratio >= 5:
            pixels[:, 1:][node[:, 1:] != node[:, :-1]] = ground
        selected = np.flatnonzero(picture.tree.block == self._selected) if self._selected >= 0 else ()
        top = self._theme.px(18)
        raster.paint(painter, QRectF(0, top, width / ratio, height / ratio), np.ascontiguousarray(pixels))
        for row in selected:
            place = np.argwhere(picture.node == row)
            if len(place):
                low, high = int(place[:, 0].min()), int(place[:, 0].max()) + 1
                left = int(place[0, 1]) * across
                painter.setPen(QPen(self._theme.color("text"), self._theme.px(2)))
                painter.drawRect(QRectF(left, top + low * down, max(across, 3), max((high - low) * down, 3)))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Say what is there."""
        place = event.position().toPoint()
        show_hint(self, place, self.hint(self.node_at(place)))

    def leaveEvent(self, event: QEvent) -> None:
        """Say nothing."""
        show_hint(self, QPoint(), ())

    def hint(self, row: int) -> list[tuple[str, str]]:
        """What the box beside the pointer says of a row of the tree."""
        picture = self._picture
        if picture is None or row < 0:
            return []
        tree = picture.tree
        lines = [("", f"page {int(tree.depth[row]) + 1:,} of its prefix")]
        sharing = int(tree.sharing[row])
        lines.append(("held by", "none: cached" if not sharing else f"{sharing:,} request" + "s" * (sharing > 1)))
        if tree.block[row] >= 0:
            lines.append(("page", f"{int(tree.block[row]):,}"))
        if tree.host[row]:
            lines.append(("in host memory", f"{int(tree.host[row]):,}"))
        if tree.cut[row]:
            lines.append(("before it", "pages that are not there any more"))
        lines += [("ways from here", f"{int(tree.leaves[row]):,}"), ("hash", f"{int(tree.hash[row]):016x}")]
        return lines

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select the page."""
        self._pick(self.node_at(event.position().toPoint()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right go along the prefix, Up and Down to the neighbours."""
        keys = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}
        step, picture = keys.get(Qt.Key(event.key())), self._picture
        if step is None or picture is None or not picture.lines:
            super().keyPressEvent(event)
            return
        rows = np.flatnonzero(picture.tree.block == self._selected) if self._selected >= 0 else np.empty(0, np.int64)
        here = np.argwhere(picture.node == rows[0]) if len(rows) else np.empty((0, 2), np.int64)
        if not len(here):
            self._pick(int(picture.node[0, 0]))
            return
        line, depth = (int(here[-1 if step[0] > 0 else 0][0]) + step[0], int(here[0][1]) + step[1])
        if 0 <= line < picture.lines and 0 <= depth < picture.columns:
            self._pick(int(picture.node[line, depth]))

    def _pick(self, row: int) -> None:
        picture = self._picture
        if picture is not None and row >= 0 and picture.tree.block[row] >= 0:
            self.picked.emit(int(picture.tree.block[row]))
