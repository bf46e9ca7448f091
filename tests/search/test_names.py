"""How names are compared: the fold, its patterns, and how similar two names are."""

import pytest

from taxpayers.names import distinctive_words, folded, glob_of, similarity, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Kedai Runcit", ["KEDAI", "RUNCIT"]),
        ("Café Désirée & Søn (M) Sdn.Bhd", ["CAFE", "DESIREE", "SØN", "M", "SDN", "BHD"]),
        ("Łódź-Straße", ["ŁODZ", "STRAßE"]),
        ("100% _a\\b", ["100", "A", "B"]),
        ("华为 技术", ["华为", "技术"]),
        ("% _ \\ ' \0", []),
    ],
)
def test_words_have_no_case_no_accents_and_no_punctuation(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_what_is_folded_once_is_folded_and_has_no_wildcard() -> None:
    for text in ("Désirée 100%_\\'", "각 각", "Ǻ ﬁ ß İ"):
        assert folded(folded(text)) == folded(text)
    for wildcard in "%_\\'[]*?^":
        assert words_of(f"a{wildcard}b") == ["A", "B"]


def test_a_short_word_is_looked_for_at_the_beginning_of_words_only() -> None:
    assert glob_of("AB").startswith("*[ (")
    assert glob_of("ABC").startswith("*[Aa")


@pytest.mark.parametrize(
    ("one", "other", "is_alike"),
    [
        ("Kilang Papan Jaya Sdn Bhd", "Kilang Papan Jaya", True),
        ("Kilang Papan Jaya Sdn Bhd", "KILANG PAPAN-JAYA SDN. BHD.", True),
        ("Kilang Papan Jaya", "Kilang Papan Jayaa", True),
        ("Kilang Papan Jaya", "Jaya Papan Kilang", True),
        ("Maju Sdn Bhd", "Jati Sdn Bhd", False),
        ("Perniagaan Baru Sdn Bhd", "Perniagaan Emas Sdn Bhd", False),
        ("Sdn Bhd", "Holdings", False),
    ],
)
def test_names_are_alike_by_the_words_that_few_share(one: str, other: str, is_alike: bool) -> None:
    assert (similarity(one, other) >= 0.5) is is_alike
    assert similarity(one, other) == similarity(other, one)


def test_a_name_of_common_words_only_has_all_of_them() -> None:
    assert distinctive_words("Holdings Sdn Bhd") == ["HOLDINGS", "SDN", "BHD"]
    assert similarity("", "") == 0
