"""The menu of a record or a track."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from inspector.picture.labels import short
from inspector.picture.timeline import Hit
from inspector.trace.selection import NOTHING, Window
from ui.timeline.tip import tip

if TYPE_CHECKING:
    from ui.timeline.commands import Commands


def menu_for(view: Commands, hit: Hit | None, identity: str) -> QMenu:
    """What can be done with the record under the pointer, if there is one, and with its track; deleted when closed."""
    menu = QMenu(view)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    trace = view.session.trace if hit is None else view.canvas.scene.trace_of(hit.track)
    if hit is not None and trace is not None:
        add, lines = menu.addAction, tip(trace, hit)
        span = Window(hit.start, hit.end)
        add("Zoom to it", partial(view.open_hit, hit))
        if span.length:
            add("Make it the range", partial(_select_range, view, span))
        if hit.source in trace.tables and "name" in trace[hit.source]:
            name = int(trace[hit.source]["name"][hit.row])
            text = trace.names[name]
            add(f"Show all “{short(text)[:40]}”", lambda: view.session.select(NOTHING.but(name=name)))
            add("Copy name", lambda: QGuiApplication.clipboard().setText(text))
        details = "\n".join(f"{label}\t{value}".strip() for label, value in lines)
        add("Copy details", lambda: QGuiApplication.clipboard().setText(details))
        menu.addSeparator()
    if view.session.selection.window is not None:
        menu.addAction("Zoom to the range", view.fit_selection)
        menu.addAction("Clear the range", lambda: view.session.select(view.session.selection.but(window=None)))
        menu.addSeparator()
    if identity:
        pinned = identity in view.arrangement.pinned
        folded = identity in view.arrangement.folded
        track = any(identity == name for name, _ in view.track_choices())
        if track:
            menu.addAction("Unpin track" if pinned else "Pin track", lambda: _pin(view, identity))
            full = "Usual height" if identity in view.arrangement.full else "Full height"
            menu.addAction(full, lambda: view.arrange(view.arrangement.toggle_full(identity)))
        menu.addAction("Unfold" if folded else "Fold", lambda: view.arrange(view.arrangement.toggle_fold(identity)))
    menu.addAction("Unfold all", lambda: view.arrange(view.arrangement.unfolded()))
    menu.addAction("Original order", lambda: view.arrange(view.arrangement.unordered()))
    return menu


def _select_range(view: Commands, window: Window) -> None:
    view.session.select(view.session.selection.but(window=window))


def _pin(view: Commands, identity: str) -> None:
    view.arrange(view.arrangement.toggle_pin(identity))
