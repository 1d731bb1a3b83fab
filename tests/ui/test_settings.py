from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.settings import MAX_RECENT, VERSION, Settings, SettingsFile, folder


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "deep" / "settings.json")
    file.values.theme, file.values.presenter = "dark", True
    file.values.keys = {"open": ["Ctrl+E"]}
    file.remember(("/a", "/b"))
    file.remember(("/c",))
    file.remember(("/a", "/b"))
    again = SettingsFile(tmp_path / "deep" / "settings.json")
    assert again.values == file.values
    assert again.values.recent == [["/a", "/b"], ["/c"]]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["settings.json"]


def test_lists_do_not_grow_for_ever(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "settings.json")
    for number in range(40):
        file.remember((f"/{number}",))
    assert len(file.values.recent) == MAX_RECENT
    file.values.arrangements = {str(number): {} for number in range(500)}
    file.save()
    assert list(file.values.arrangements)[-1] == "499"
    assert len(file.values.arrangements) == 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        json.dumps({"version": VERSION + 1}),
        json.dumps({"version": VERSION, "theme": "pink"}),
        json.dumps({"version": VERSION, "keys": {"open": "Ctrl+O"}}),
        json.dumps({"version": VERSION, "recent": [[]]}),
        json.dumps({"version": VERSION, "arrangements": {"x": 3}}),
        "[" * 100_000,
    ],
)
def test_what_is_damaged_is_set_aside(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text, encoding="utf-8")
    file = SettingsFile(path)
    assert file.values == Settings()
    assert file.trouble
    assert (tmp_path / "settings.damaged.json").read_text(encoding="utf-8") == text
    assert not path.exists()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_no_content_stops_the_program(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.mktemp("any") / "settings.json"
    for text in (json.dumps(value), json.dumps({"version": VERSION, "keys": value, "recent": value})):
        path.write_text(text, encoding="utf-8")
        SettingsFile(path).save()
        assert json.loads(path.read_text(encoding="utf-8"))["version"] == VERSION


def test_what_a_newer_program_added_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"version": VERSION, "theme": "light", "colour of the sky": 3}), encoding="utf-8")
    file = SettingsFile(path)
    assert file.values == Settings(theme="light")
    assert not file.trouble


def test_a_place_that_cannot_be_written_is_told_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    file = SettingsFile(tmp_path / "file" / "settings.json")
    file.save()
    assert "settings" in file.trouble


def test_the_environment_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFLIGHT_CONFIG_DIR", str(tmp_path))
    assert folder() == tmp_path
