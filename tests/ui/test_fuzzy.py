from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from ui.fuzzy import ranked, score


def occurs_in_order(query: str, text: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in query)


@example("bb", "ab-b")
@given(st.text("abc ", max_size=5), st.text("abcd -", max_size=12))
def test_it_fits_where_the_letters_occur_in_order(query: str, text: str) -> None:
    wanted = query.replace(" ", "")
    fits = occurs_in_order(wanted, text) or query.strip() in text
    assert (score(query, text) is not None) == fits


def test_what_was_meant_comes_first() -> None:
    titles = ["Follow the desktop", "Next idle gap", "Open trace…", "Longest idle gap", "Go to track…"]
    assert [titles[at] for at in ranked("gap", titles)] == ["Next idle gap", "Longest idle gap"]
    assert titles[ranked("lig", titles)[0]] == "Longest idle gap"
    assert titles[ranked("OT", titles)[0]] == "Open trace…"
    assert ranked("", titles) == [0, 1, 2, 3, 4]
    assert ranked("xyz", titles) == []


def test_other_words_find_it_too_after_titles_that_have_the_word() -> None:
    titles = ["Dark or light", "Theme of the day", "Quit"]
    assert ranked("theme", titles, ["theme mode", "", "exit"]) == [1, 0]
    assert ranked("exi", titles, ["theme mode", "", "exit"]) == [2]
    assert ranked("ode", titles, ["theme mode", "", "exit"]) == []
