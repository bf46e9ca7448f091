"""Names are found by any word and any part of a word, on both databases alike."""

import importlib

import pytest
from django.apps import apps
from django.core.management.base import CommandError
from django.db import connection

from taxpayers.models import SystemUser, Taxpayer
from taxpayers.names import distinctive_words, folded, glob_of, similarity, words_of
from taxpayers.similar_names import similar_taxpayers
from tests.support import make

pytestmark = pytest.mark.django_db


@pytest.fixture
def wanted(db: None) -> Taxpayer:
    for name in ("Runcit", "Ahmad Trading", "Kedai Emas", "Cafe"):
        make.taxpayer(name=name)
    return make.taxpayer(name="Kedai Runcit (Ahmad) & Café-Sèn's 100% 华为技术 Sdn. Bhd.")


@pytest.mark.parametrize(
    "term",
    [
        *("kedai runcit", "RUNCIT kedai", "unci sdn", "edai ahm", "bhd sdn", "cafe sen"),
        *("CAFÉ séN", "sdn.bhd", "(ahmad) s", "uncit kedai", "ah ru", "100%", "100 s", "sen's"),
        *("华为技", "华为 sdn"),
    ],
)
def test_a_name_is_found_by_parts_of_its_words_in_any_order(term: str, wanted: Taxpayer) -> None:
    assert list(Taxpayer.objects.filter(name__has_words=term)) == [wanted]


@pytest.mark.parametrize(
    "term",
    [
        *("hmad edai x", "ed ai", "%", "_", "k%i", "\\", "' OR 1=1 --", "(", "", "\0", "[a-z]*"),
        *("x" * 20_000, "ab " * 7_000),  # longer than every name
    ],
    ids=lambda term: repr(term[:20]),
)
def test_nothing_else_is_found(term: str, wanted: Taxpayer) -> None:
    assert list(Taxpayer.objects.filter(name__has_words=term)) == []


def test_it_looks_through_a_relation(wanted: Taxpayer) -> None:
    user = make.system_user(taxpayer=wanted)
    make.system_user()
    assert list(SystemUser.objects.filter(taxpayer__name__has_words="uncit ahm")) == [user]


def test_similar_names_are_found_and_unlike_ones_not() -> None:
    """What is alike, test_names.py says; here the database finds it."""
    wanted = make.taxpayer(name="Kilang Papan Jaya Sdn Bhd")
    for other in ("Kilang Emas Sdn Bhd", "Papan Iklan Sdn Bhd", "Jaya Grocer Sdn Bhd"):
        make.taxpayer(name=other)
    for name in ("kilang papan jaya", "Kilang Papan Jayaa Sdn Bhd", "Jaya Papan Kilang"):
        assert similar_taxpayers(name) == [wanted]
    for name in ("Perniagaan Batu Sdn Bhd", "Sdn Bhd", "% _"):
        assert similar_taxpayers(name) == []


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("model", "index"),
    [(Taxpayer, "taxpayer_by_name_part"), (SystemUser, "system_user_by_name_part")],
)
def test_the_index_of_trigrams_answers(model: type, index: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    rows = model.objects  # type: ignore[attr-defined]
    assert index in rows.filter(name__has_words="kedai run ah").explain()
    assert index in rows.filter(name__is_similar_to="Kedai Runcit").explain()


@pytest.mark.postgresql
def test_a_role_that_may_not_create_the_extension_is_told_what_to_do() -> None:
    migration = importlib.import_module("taxpayers.migrations.0001_initial")
    with connection.cursor() as cursor:
        cursor.execute("DROP EXTENSION pg_trgm CASCADE")
        cursor.execute("CREATE ROLE clerk")
        cursor.execute("SET LOCAL ROLE clerk")
    with (
        pytest.raises(CommandError, match="let an administrator execute CREATE EXTENSION"),
        connection.schema_editor() as editor,
    ):
        migration.tune_postgresql(apps, editor)


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
