"""The window: start page or views, docks, menus, status line. It knows no figure and no table of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from PySide6.QtCore import QByteArray, QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QIcon, QPaintEvent, QShowEvent, QStatusTipEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QMainWindow, QStackedWidget, QTabWidget, QVBoxLayout, QWidget

from ui.actions import PRESETS
from ui.commands import Commands
from ui.docks import Docks
from ui.exporting import Exporting
from ui.keys import Keyboard
from ui.menus import Menus, entries, key_lines
from ui.run.desk import Desk
from ui.status import Status
from ui.views import FACTS, HEADLINE, VIEWS, view_class
from ui.views.start import Start
from ui.views.view import Host, View
from ui.widgets.opening import Opening
from ui.widgets.palette_box import Entry, PaletteBox
from ui.widgets.sheet import Line, Sheet

_GESTURES = (
    ("Zoom at the pointer", "Ctrl + wheel, pinch"),
    ("Scroll tracks, rows and pages; pan where nothing scrolls", "wheel"),
    ("Pan", "Shift or Alt + wheel, middle drag"),
    ("Select a range", "drag"),
    ("Zoom to a range", "Alt + drag"),
)
_RESULTS_SHARE = 0.75


class MainWindow(QMainWindow):
    """`first_painted` once, when something is on the screen: what is slow to load may load then."""

    first_painted = Signal()

    def __init__(self, host: Host) -> None:
        super().__init__()
        self.host, self.session, self.theme = host, host.session, host.theme
        self.views: dict[str, View] = {}
        self.middle: View | None = None
        self._painted = False
        self.targets: dict[str, object] = {"window": self, "session": self.session, "theme": self.theme}
        self.commands = Commands(self.targets, self.session, host.settings.values)
        self.exporting = Exporting(self)
        self.desk = self.targets["desk"] = Desk(self, host.child)
        self.setObjectName("main")
        self.setAccessibleName("Inflight Inspector")
        self.setWindowIcon(QIcon(str(Path(__file__).with_name("icon.svg"))))
        self.setAcceptDrops(True)
        self.setDockNestingEnabled(True)
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.keyboard = Keyboard(self.commands, self)
        self._loading = self._load_views()
        self.docks = Docks(self, self.theme, host.settings, self._listen_to)
        self.start = Start(self.theme, host.settings)
        self.start.wanted.connect(self.session.open)
        self.start.choose.connect(self.choose_files)
        for signal, does in (
            (self.start.demo, self.desk.demo),
            (self.start.launch, self.desk.launch),
            (self.start.attach, self.desk.attach),
        ):
            signal.connect(does)
        self.opening = Opening(self.theme, self.session)
        self._work = QWidget()
        self._work_layout = QVBoxLayout(self._work)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.start)
        self._pages.addWidget(self._work)
        body = QWidget()
        layout = QVBoxLayout(body)
        layout.addWidget(self.opening)
        layout.addWidget(self._pages, 1)
        for each in (layout, self._work_layout):
            each.setContentsMargins(0, 0, 0, 0)
            each.setSpacing(0)
        self.setCentralWidget(body)
        self.menus = Menus(self.menuBar(), self.commands)
        self.status = Status(self.theme, self.session)
        self.status.asked.connect(self.show_notes)
        self.setStatusBar(self.status)
        self.palette_box = PaletteBox(self.theme, self)
        self.key_sheet = Sheet(self.theme, self, "Keys", widest=1280)
        self.legend_sheet = Sheet(self.theme, self, "Legend of colours")
        self.session.trace_changed.connect(self._trace_changed)
        self.theme.changed.connect(self._rethemed)
        self._restore_geometry()
        self._trace_changed()

    # Views.

    def load_views(self) -> None:
        """Build all views that are not there yet, and import them if need be: one of them is wanted now."""
        for _ in self._loading:
            pass

    def load_in_turns(self, then: Callable[[], None]) -> None:
        """Build the views one by one, each when the window has seen to everything else; `then` is called at the end."""
        if next(self._loading, None) is None:
            then()
        else:
            QTimer.singleShot(0, self, partial(self.load_in_turns, then))

    def _load_views(self) -> Iterator[View]:
        for number, name in enumerate((HEADLINE, *VIEWS, FACTS)):
            view = view_class(name)(self.host)
            self.views[view.ID] = self.targets[view.ID] = view
            if number == 0:
                self._work_layout.addWidget(view)
            elif number == 1:
                self.middle = view
                self._work_layout.addWidget(view, 1)
            else:
                self.menus.menus["View"].addAction(self.docks.add(view).toggleViewAction())
            if view.ID == "run":
                self.desk.listen_to(view)
            if view.ID == "results":
                view.asked_place.connect(self.middle.show_place)  # type: ignore[attr-defined, union-attr]
            if self.session.trace is not None:
                view.begin()
            yield view

    def current_view(self) -> View | None:
        """The view with the focus, else the one in the middle."""
        widget = QApplication.focusWidget()
        while widget is not None:
            if isinstance(widget, View):
                return widget
            widget = widget.parentWidget()
        return self.middle

    def next_view(self) -> None:
        """Give the focus to the next view that is in sight."""
        shown = [view for view in self.views.values() if view.isVisible() and not view.visibleRegion().isEmpty()]
        if not shown:
            return
        now = self.current_view()
        shown[(shown.index(now) + 1 if now in shown else 0) % len(shown)].take_focus()

    def show_view(self, view_id: str, focus: bool = True) -> None:
        """Bring a view into sight and give it the focus, unless keys are to go where they went."""
        dock = self.docks.find(view_id)
        if dock is not None:
            dock.show()
            dock.raise_()
        if focus and view_id in self.views:
            self.views[view_id].take_focus()

    def float_view(self) -> None:
        """Take the current view out of the window, or put it back."""
        view = self.current_view()
        dock = self.docks.find(view.ID) if view is not None else None
        if dock is not None:
            dock.setFloating(not dock.isFloating())

    # Opening.

    def choose_files(self) -> None:
        """Ask for files; several are the ranks of one job."""
        from inspector.readers import suffixes

        pattern = " ".join(f"*{suffix}" for suffix in suffixes())
        title = "Open trace (several files are the ranks of one job)"
        chosen, _ = QFileDialog.getOpenFileNames(self, title, self._opened_in(), f"Traces ({pattern});;All files (*)")
        if chosen:
            self.session.open(chosen)

    def choose_folder(self) -> None:
        """Ask for a recording or another trace that is a folder."""
        chosen = QFileDialog.getExistingDirectory(self, "Open recording", self._opened_in())
        if chosen:
            self.session.open([chosen])

    def _opened_in(self) -> str:
        """The folder of what was opened last, where it is still there."""
        recent = self.host.settings.values.recent
        last = Path(recent[0][0]).parent if recent else Path.home()
        return str(last if last.is_dir() else Path.home())

    def close_trace(self) -> None:
        """Back to the start page."""
        self.session.set_trace(None)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files may be dropped anywhere."""
        if _dropped(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open what was dropped."""
        paths = _dropped(event)
        if paths:
            event.acceptProposedAction()
            self.session.open(paths)

    # Actions.

    def show_palette(self) -> None:
        """Everything that can be done now, and everything that can be opened."""
        found = entries(self.commands)
        for view in self.views.values():
            if self.docks.find(view.ID) is not None and self.session.trace is not None:
                found.append(Entry(f"Show {view.TITLE}", "", partial(self.show_view, view.ID)))
        for paths in self.host.settings.values.recent:
            found.append(Entry(f"Open {Path(paths[0]).name}", paths[0], partial(self.session.open, paths)))
        for preset in PRESETS:
            found.append(Entry(f"Keys as in {preset}", "", partial(self._use_preset, preset)))
        self.palette_box.choose(found, "What do you want to do?")

    def choose_track(self) -> None:
        """Go to a track by its name."""
        timeline = self.views.get("timeline")
        choices = getattr(timeline, "track_choices", None)
        go = getattr(timeline, "go_to_track", None)
        if choices is None or go is None:
            return
        found = [Entry(title, "", partial(go, identity)) for identity, title in choices()]
        self.palette_box.choose(found, "Go to track")

    def show_keys(self) -> None:
        """All keys; the file to change them in is named below."""
        lines = key_lines(self.commands, _GESTURES)
        own = [Line("Your own keys"), Line("in the settings file", f'"keys", by action id: {self.host.settings.path}')]
        self.key_sheet.show_lines([*lines, *own])

    def toggle_legend(self) -> None:
        """What the colours mean."""
        from ui.legend import legend

        self.legend_sheet.show_lines(legend())

    def toggle_side_bar(self) -> None:
        """Show or hide what is known about the trace."""
        dock = self.docks.find("facts")
        if dock is not None:
            dock.setVisible(not dock.isVisible())

    def show_notes(self) -> None:
        """The quality notes, in the side bar."""
        self.show_view("facts")
        show = getattr(self.views.get("facts"), "show_notes", None)
        if show is not None:
            show()

    def toggle_full_screen(self) -> None:
        """All of the screen, and back."""
        if self.isFullScreen():
            self.showNormal()
        else:
            self.showFullScreen()

    def reset_arrangement(self) -> None:
        """Docks as they come."""
        if self.session.trace is not None:
            self.docks.reset()
        self.host.settings.values.layout = ""

    def next_device(self) -> None:
        """Figures and tables of the next device."""
        trace = self.session.trace
        if trace is not None and len(trace["devices"]):
            device = (self.session.device + 1) % len(trace["devices"])
            self.session.select(self.session.selection.but(device=device, gap=None, table=None, row=None, stream=None))

    def escape(self) -> None:
        """End what is going on in the timeline, else clear the selection."""
        cancel = getattr(self.views.get("timeline"), "escape", None)
        if cancel is None or not cancel():
            self.session.clear_selection()

    def copy_about(self) -> None:
        """What one would want to know of a fault: the program, the trace, its quality."""
        self.exporting.copy_about()

    def export_csv(self) -> None:
        """The numbers behind the current view."""
        self.exporting.csv(self.current_view())

    def export_png(self) -> None:
        """The current view as it is on the screen."""
        self.exporting.png(self.current_view())

    def export_svg(self) -> None:
        """The current view as vectors."""
        self.exporting.svg(self.current_view())

    def copy_rows(self) -> None:
        """The numbers behind the current view, for a spreadsheet."""
        self.exporting.copy_rows(self.current_view())

    def copy_picture(self) -> None:
        """The current view as a picture, on the clipboard."""
        self.exporting.copy_picture(self.current_view())

    # Events.

    def event(self, event: QEvent) -> bool:
        """What a view has to say stands beside the rest of the status line."""
        if isinstance(event, QStatusTipEvent):
            self.status.showMessage(event.tip())
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Say once that there is something to be seen."""
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            QTimer.singleShot(0, self.first_painted.emit)

    def showEvent(self, event: QShowEvent) -> None:
        """Listen to the keys of the window that is there now."""
        super().showEvent(event)
        self._listen_to(self)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Keep how things stand, unless a run keeps the window."""
        if not self.desk.may_leave():
            event.ignore()
            return
        values = self.host.settings.values
        values.geometry = bytes(self.saveGeometry().toBase64().data()).decode("ascii")
        self.docks.keep()
        self.session.close()
        self.desk.leave()
        self.host.settings.save()
        super().closeEvent(event)

    def _listen_to(self, widget: QWidget) -> None:
        handle = widget.windowHandle()
        if handle is not None:
            handle.installEventFilter(self.keyboard)

    def _trace_changed(self) -> None:
        trace = self.session.trace
        if trace is None:
            self.docks.hide()
            self.start.refresh()
            self._pages.setCurrentWidget(self.start)
            self.setWindowTitle("Inflight Inspector")
            return
        self.load_views()
        self._pages.setCurrentWidget(self._work)
        self.docks.show()
        name = Path(trace.info.paths[0]).name if trace.info.paths else trace.info.kind
        if len(trace.info.paths) > 1:
            name += f" and {len(trace.info.paths) - 1} more"
        simulated = " (simulated)" if trace.info.basis == "simulated" else ""
        self.setWindowTitle(f"{name}{simulated} – Inflight Inspector")
        # Results alone leave the middle empty.
        in_time = len(trace["ranges"]) + len(trace["counters"]) + trace.num_work()
        share = 0.5 if in_time else _RESULTS_SHARE
        tables = {"results": bool(trace.results), "layers": bool(trace.layers)}
        for view_id, on in tables.items():
            self.docks.show_for(view_id, on, share)
        self.views["headline"].setVisible(bool(trace.num_work()) or not any(tables.values()))
        shown = next((self.views.get(view_id) for view_id, on in tables.items() if on), self.middle)
        if shown is not None:
            shown.take_focus()
        self.desk.trace_came()

    def _rethemed(self) -> None:
        self.status.setVisible(not self.theme.presenter)

    def _use_preset(self, preset: str) -> None:
        self.commands.use_preset(preset)
        self.keyboard.rebind()
        self.host.settings.save()

    def _restore_geometry(self) -> None:
        kept = QByteArray.fromBase64(self.host.settings.values.geometry.encode("ascii", "replace"))
        if kept.isEmpty() or not self.restoreGeometry(kept):
            room = self.screen().availableGeometry()
            self.resize(min(1440, room.width() * 9 // 10), min(900, room.height() * 9 // 10))


def _dropped(event: QDropEvent) -> list[str]:
    """Paths of the files that are dropped; what is not on this machine is not ours to fetch."""
    return [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
