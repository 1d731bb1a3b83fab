"""Everything that can be done, as one table. Menus, keys, command palette, key help and tool tips are views of it.

To add one, add a row; `runs` names what does it, as `target.method`: the target is the window, the session, the theme,
or a view by its ID. A row whose target is not there (a view that is not in this window) is not offered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Action:
    """One thing that can be done.

    `keys` in Qt's portable spelling ('Ctrl+K'), letters for their place on a US keyboard. `where` is "window" for
    anywhere, else the ID of a view: then letters reach it from everywhere but a text field, other keys only while it
    has the focus. With `needs_trace` it is offered only while one is open. A `repeats` one goes on while the key is
    held. `menu` is where it stands; '' keeps it to keys and palette.
    """

    id: str
    title: str
    keys: tuple[str, ...]
    where: str
    runs: str
    menu: str = ""
    needs_trace: bool = True
    repeats: bool = False


MENUS: tuple[str, ...] = ("File", "View", "Select", "Timeline", "Help")


def _window(id: str, title: str, keys: str, runs: str, menu: str = "", trace: bool = False) -> Action:
    return Action(id, title, tuple(keys.split()), "window", runs, menu, trace)


def _timeline(id: str, title: str, keys: str, menu: str = "Timeline", repeats: bool = False) -> Action:
    return Action(f"timeline.{id}", title, tuple(keys.split()), "timeline", f"timeline.{id}", menu, repeats=repeats)


ACTIONS: tuple[Action, ...] = (
    _window("open", "Open trace…", "Ctrl+O", "window.choose_files", "File"),
    _window("open_folder", "Open recording or folder…", "Ctrl+Shift+O", "window.choose_folder", "File"),
    _window("launch", "Launch and record…", "Ctrl+L", "desk.launch", "File"),
    _window("attach", "Attach…", "Ctrl+T", "desk.attach", "File"),
    _window("demo", "Run the built-in engine", "", "desk.demo", "File"),
    _window("save", "Save recording…", "Ctrl+S", "desk.save", "File"),
    _window("export_csv", "Export numbers of this view as CSV…", "Ctrl+Shift+E", "window.export_csv", "File", True),
    _window("export_png", "Export picture of this view as PNG…", "", "window.export_png", "File", True),
    _window("export_svg", "Export picture of this view as SVG…", "", "window.export_svg", "File", True),
    _window("copy", "Copy numbers of this view", "Ctrl+C", "window.copy_rows", "File", True),
    _window("copy_picture", "Copy picture of this view", "Ctrl+Shift+C", "window.copy_picture", "File", True),
    _window("close_trace", "Close trace", "Ctrl+W", "window.close_trace", "File", True),
    _window("quit", "Quit", "Ctrl+Q", "window.close", "File"),
    _window("commands", "All commands…", "Ctrl+K Ctrl+Shift+P", "window.show_palette", "View"),
    _window("tracks", "Go to track…", "Ctrl+P", "window.choose_track", "View", True),
    _window("side_bar", "Side bar: about this trace", "Ctrl+B", "window.toggle_side_bar", "View", True),
    _window("details", "Details of the selection", "Q", "timeline.toggle_details", "View", True),
    _window("legend", "Legend of colours", "L", "window.toggle_legend", "View"),
    _window("next_view", "Next view", "Ctrl+Tab F6", "window.next_view", "View", True),
    _window("float", "Take this view out of the window, or back", "", "window.float_view", "View", True),
    _window("dark", "Dark or light", "Ctrl+Shift+L", "theme.toggle", "View"),
    _window("system_theme", "As light or dark as the desktop", "", "theme.follow_system", "View"),
    _window("presenter", "Presenter size", "F5", "theme.toggle_presenter", "View"),
    _window("full_screen", "Full screen", "F11", "window.toggle_full_screen", "View"),
    _window("reset", "Reset the arrangement of the window", "", "window.reset_arrangement", "View"),
    _window("undo", "Undo selection", "Ctrl+Z", "session.undo_selection", "Select", True),
    _window("redo", "Redo selection", "Ctrl+Shift+Z Ctrl+Y", "session.redo_selection", "Select", True),
    _window("clear", "Clear selection", "Esc", "window.escape", "Select"),
    _window("next_gap", "Next idle gap", "G", "gaps.next_gap", "Select", True),
    _window("previous_gap", "Previous idle gap", "Shift+G", "gaps.previous_gap", "Select", True),
    _window("costliest_gap", "Longest idle gap", "Alt+G", "gaps.costliest_gap", "Select", True),
    _window("next_device", "Next device", "Alt+D", "window.next_device", "Select", True),
    _window("follow_end", "End of the trace; of a run its newest time", "End", "session.follow_end", "Timeline", True),
    Action("hold", "Hold or resume the picture of a run", ("Space",), "timeline", "session.hold", "Timeline"),
    _window("fit_all", "Whole trace", "0 Home", "session.fit", "Timeline", True),
    _window("back", "View before this one", "Backspace", "session.back", "Timeline", True),
    _window("forward", "View after this one", "Shift+Backspace", "session.forward", "Timeline", True),
    _timeline("zoom_in", "Zoom in", "W", repeats=True),
    _timeline("zoom_out", "Zoom out", "S", repeats=True),
    _timeline("pan_left", "Earlier", "A Left", repeats=True),
    _timeline("pan_right", "Later", "D Right", repeats=True),
    _timeline("pan_left_far", "Much earlier", "Shift+A Shift+Left", repeats=True),
    _timeline("pan_right_far", "Much later", "Shift+D Shift+Right", repeats=True),
    _timeline("scroll_up", "Tracks up", "Up", repeats=True),
    _timeline("scroll_down", "Tracks down", "Down", repeats=True),
    _timeline("fit_selection", "Fit the selection; again: the whole trace", "F"),
    _timeline("range_from_selection", "Range: make the figures those of the selected event", "R"),
    _timeline("mark", "Mark a time until the next mark; figures stay", "M"),
    _timeline("keep_mark", "Mark a time and keep it with the trace; figures stay", "Shift+M"),
    _timeline("search", "Search names…", "/ Ctrl+F"),
    _timeline("next_hit", "Next hit", "N", repeats=True),
    _timeline("previous_hit", "Previous hit", "Shift+N", repeats=True),
    _timeline("next_event", "Next on the track", ".", repeats=True),
    _timeline("previous_event", "Previous on the track", ",", repeats=True),
    _timeline("next_kernel", "Next kernel", "Tab", repeats=True),
    _timeline("previous_kernel", "Previous kernel", "Shift+Tab", repeats=True),
    _timeline("follow_forward", "From the launch to the kernel", "]"),
    _timeline("follow_back", "From the kernel to its launch", "["),
    _timeline("pin", "Pin or unpin the track", "P"),
    _timeline("collapse", "Fold or unfold the track", "C"),
    _window("pages.play", "KV pages: let time go on, or stop it", "", "pages.toggle_play", "", True),
    Action("schedule.waiting", "Schedule: requests that only wait", (), "schedule", "schedule.toggle_waiting"),
    Action("schedule.static", "Schedule: static batching beside it", (), "schedule", "schedule.toggle_static"),
    Action("schedule.time", "Schedule: time or iterations across", (), "schedule", "schedule.toggle_time"),
    _window("pages.newest", "KV pages: the newest or busiest moment", "", "pages.follow", "", True),
    _window("pipeline.closer", "Pipeline: show one iteration", "", "pipeline.show_iteration", "", True),
    _window("keys", "Keys", "F1 ?", "window.show_keys", "Help"),
    _window("copy_report", "Copy report on this trace and program", "", "window.copy_about", "Help"),
)

OTHER_WORDS: Mapping[str, str] = {
    "open": "load file import trace",
    "open_folder": "load directory import",
    "launch": "record run start command workload profile",
    "attach": "connect server url pid process",
    "demo": "live example sample start",
    "save": "convert keep copy store",
    "export_csv": "save download table spreadsheet",
    "export_png": "save image screenshot",
    "export_svg": "save image vector",
    "copy": "clipboard table",
    "copy_picture": "clipboard image screenshot",
    "close_trace": "start page home",
    "quit": "exit leave",
    "commands": "palette",
    "side_bar": "information info properties quality notes metadata",
    "details": "properties panel inspector",
    "legend": "colors key meaning",
    "float": "undock detach pop out",
    "dark": "theme mode appearance night color scheme",
    "system_theme": "theme mode automatic appearance",
    "presenter": "font size larger bigger text zoom presentation",
    "reset": "layout restore default windows docks",
    "next_device": "gpu switch",
    "clear": "deselect unselect none",
    "costliest_gap": "worst largest biggest costliest",
    "fit_all": "reset zoom full everything",
    "back": "undo zoom previous",
    "timeline.search": "find filter",
    "timeline.mark": "bookmark measure flag",
    "timeline.keep_mark": "bookmark flag note",
    "timeline.pin": "favorite stick",
    "timeline.collapse": "collapse expand hide",
    "timeline.range_from_selection": "select area measure",
    "keys": "shortcuts hotkeys keyboard help bindings",
    "copy_report": "bug about version support",
}
"""What else people call an action, by its id: the command palette finds it by these too."""

PRESETS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Perfetto": {},
    "Nsight": {
        "timeline.zoom_in": ("Ctrl+=", "Ctrl++", "W"),
        "timeline.zoom_out": ("Ctrl+-", "S"),
        "fit_all": ("Ctrl+0", "0", "Home"),
        "timeline.next_event": ("Ctrl+Right", "."),
        "timeline.previous_event": ("Ctrl+Left", ","),
        "timeline.search": ("Ctrl+F", "/"),
    },
}


def keys_of(action: Action, preset: str, own: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The keys of an action: the user's own, else those of the preset, else the table's."""
    if action.id in own:
        return tuple(own[action.id])
    return PRESETS.get(preset, {}).get(action.id, action.keys)
