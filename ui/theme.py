"""Surfaces, text, lines, the accent, type sizes and the grid: light, dark and presenter.

Greys carry structure; what has a meaning gets its colour from the palette of meanings, not from here.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory

from ui.settings import SettingsFile

Mode = Literal["system", "light", "dark"]
Role = Literal["text", "small", "strong", "figure"]
GRID = 8
_PRESENTER = 1.6
_ROLES: dict[Role, tuple[float, QFont.Weight]] = {
    "text": (1.0, QFont.Weight.Normal),
    "small": (0.88, QFont.Weight.Normal),
    "strong": (1.0, QFont.Weight.DemiBold),
    "figure": (1.75, QFont.Weight.DemiBold),
}


@dataclass(frozen=True)
class Tokens:
    """Colours of one theme, as '#rrggbb'.

    `surface` lies under content, `raised` under bars and headers, `sunken` under what is recessed; `line` separates,
    `edge` outlines what can be used; `text`, `muted` and `faint` fall off in weight (faint is for nothing that must be
    read); `accent` is what is selected, `wash` its ground; `wrong` and `doubt` are for errors and warnings.
    """

    surface: str
    raised: str
    sunken: str
    line: str
    edge: str
    text: str
    muted: str
    faint: str
    accent: str
    on_accent: str
    wash: str
    hover: str
    wrong: str
    doubt: str


LIGHT = Tokens(
    surface="#ffffff",
    raised="#f4f5f7",
    sunken="#e9ebee",
    line="#dfe2e6",
    edge="#b9bfc7",
    text="#1b1f24",
    muted="#59616b",
    faint="#9aa2ac",
    accent="#0b63ce",
    on_accent="#ffffff",
    wash="#dbe9fb",
    hover="#eceef1",
    wrong="#b3261e",
    doubt="#8a5a00",
)
DARK = Tokens(
    surface="#1a1c1f",
    raised="#222529",
    sunken="#131517",
    line="#31353b",
    edge="#50565f",
    text="#e3e5e8",
    muted="#a0a7b0",
    faint="#666d77",
    accent="#5aa7ff",
    on_accent="#0b1017",
    wash="#213a57",
    hover="#2a2e33",
    wrong="#ff8a80",
    doubt="#f0b95b",
)


class Theme(QObject):
    """Which of the two is on, and how large the type is. `changed` after either.

    `tokens` are the colours that are on, `scale` is by how much type and lines are larger than usual.
    """

    changed = Signal()
    tokens: Tokens
    scale: float

    def __init__(self, app: QApplication, settings: SettingsFile, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._settings = settings
        self._fonts: dict[tuple[Role, bool], QFont] = {}
        app.setStyle(QStyleFactory.create("Fusion"))
        system = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
        self._family = system.family() if QFontInfo(system).exactMatch() else _first_of("Inter", "Noto Sans")
        self._base_px = min(max(QFontInfo(system).pixelSize(), 12), 15)
        app.styleHints().colorSchemeChanged.connect(self._system_changed)
        self.apply()

    @property
    def dark(self) -> bool:
        """Whether the dark theme is on."""
        return self.tokens is DARK

    @property
    def presenter(self) -> bool:
        """Whether everything is large, for an audience."""
        return self._settings.values.presenter

    def px(self, length: float) -> int:
        """A length of the grid, scaled with the type."""
        return round(length * self.scale)

    def color(self, token: str) -> QColor:
        """The colour of a token by its name; raises AttributeError for a name that is none."""
        return QColor(getattr(self.tokens, token))

    def font(self, role: Role = "text") -> QFont:
        """The type for a role, with digits of equal width and every letter as it is written; yours to change."""
        # Made once: a copy shares what Qt has looked up for its glyphs, a new one has all of it looked up again.
        key = (role, self.presenter)
        font = self._fonts.get(key)
        if font is None:
            font = self._fonts[key] = self._made(role)
        return QFont(font)

    def _made(self, role: Role) -> QFont:
        factor, weight = _ROLES[role]
        font = QFont(self._family) if self._family else QFont()
        font.setPixelSize(round(self._base_px * factor * self.scale))
        font.setWeight(weight)
        font.setFeature(QFont.Tag("tnum"), 1)
        # Contextual alternates turn names into others: h100x2 into h100×2, -> into an arrow.
        for tag in ("calt", "liga", "clig", "dlig"):
            font.setFeature(QFont.Tag(tag), 0)
        return font

    def set_mode(self, mode: Mode) -> None:
        """Follow the system, or stay light or dark; kept."""
        if mode != self._settings.values.theme:
            self._settings.values.theme = mode
            self._settings.save()
            self.apply()

    def toggle(self) -> None:
        """To the other of light and dark; kept."""
        self.set_mode("light" if self.dark else "dark")

    def follow_system(self) -> None:
        """As light or dark as the desktop; kept."""
        self.set_mode("system")

    def toggle_presenter(self) -> None:
        """Large type for an audience, and back; kept."""
        self._settings.values.presenter = not self.presenter
        self._settings.save()
        self.apply()

    def apply(self) -> None:
        """Give palette, font and style sheet to the application."""
        # Kept, since painting asks for them some ten thousand times a second.
        self.tokens, self.scale = (DARK if self._is_dark() else LIGHT), (_PRESENTER if self.presenter else 1.0)
        self._app.setPalette(self._palette())
        self._app.setFont(self.font())
        # Qt takes three times as long to put one sheet in the place of another as to set it where there is none.
        self._app.setStyleSheet("")
        self._app.setStyleSheet(self._sheet())
        self.changed.emit()

    def _is_dark(self) -> bool:
        mode = self._settings.values.theme
        if mode == "system":
            return self._app.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return mode == "dark"

    def _system_changed(self) -> None:
        if self._settings.values.theme == "system":
            self.apply()

    def _palette(self) -> QPalette:
        color, role = self.color, QPalette.ColorRole
        palette = QPalette(color("raised"))
        for group, text in ((QPalette.ColorGroup.All, "text"), (QPalette.ColorGroup.Disabled, "faint")):
            palette.setColor(group, role.WindowText, color(text))
            palette.setColor(group, role.Text, color(text))
            palette.setColor(group, role.ButtonText, color(text))
        for each, token in (
            (role.Window, "raised"),
            (role.Base, "surface"),
            (role.AlternateBase, "raised"),
            (role.Button, "raised"),
            (role.ToolTipBase, "raised"),
            (role.ToolTipText, "text"),
            (role.PlaceholderText, "muted"),
            (role.Highlight, "wash"),
            (role.HighlightedText, "text"),
            (role.Link, "accent"),
            (role.LinkVisited, "accent"),
            (role.Mid, "line"),
            (role.Dark, "edge"),
            (role.Light, "surface"),
        ):
            palette.setColor(each, color(token))
        return palette

    def _sheet(self) -> str:
        text = Path(__file__).with_name("style.qss").read_text(encoding="utf-8")
        values: dict[str, str] = {name: str(value) for name, value in asdict(self.tokens).items()}
        values["folder"] = Path(__file__).parent.as_posix()
        values["small"] = f"{self.font('small').pixelSize()}px"
        for step in (1, 2, 4, 5, 8, 12, 16, 24):
            values[f"px{step}"] = f"{self.px(step)}px"
        return re.sub(r"@(\w+)", lambda match: values[match[1]], text)


def _first_of(*families: str) -> str:
    known = set(QFontDatabase.families())
    return next((family for family in families if family in known), "")
