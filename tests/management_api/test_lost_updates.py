"""`ETag` and `If-Match`: no change overwrites one that its author has not seen."""

import pytest
from django.db import connection, transaction
from django.http import HttpResponse

from taxpayers.models import Taxpayer
from tests.management_api.portal import Portal, assert_ok, assert_problem, new_portal
from tests.support.at_once import begin, end
from tests.support.factories import TaxpayerFactory

pytestmark = pytest.mark.django_db
PATH = "/taxpayers/C2584563222"
RENAME = {"name": "New", "reason": "merger"}


@pytest.fixture
def taxpayer(db: None) -> Taxpayer:
    return TaxpayerFactory.create(tin="C2584563222", name="Old")


def test_a_change_of_what_has_changed_is_a_412(portal: Portal, taxpayer: Taxpayer) -> None:
    etag = portal.etag(PATH)
    assert_ok(portal.patch(PATH, RENAME, If_Match=f'"other", {etag}'))  # one of several
    for stale in (etag, f"W/{portal.etag(PATH)}", '"other"'):
        answer = portal.patch(PATH, RENAME | {"name": "Newer"}, If_Match=stale)
        assert_problem(answer, 412, "changed_meanwhile", "Read it again, decide again")
    assert Taxpayer.objects.get(tin="C2584563222").name == "New"


def test_an_etag_stays_the_same_as_long_as_the_record_does(
    portal: Portal, taxpayer: Taxpayer
) -> None:
    path = f"/system-users/{portal.erp.client_id}"
    etag = portal.etag(path)
    assert portal.erp.login().status_code == 200  # its use is no change
    assert portal.etag(path) == etag
    assert portal.etag(PATH) == portal.etag(PATH) != etag


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_of_two_changes_at_once_the_second_sees_the_first_and_is_refused() -> None:
    """Two connections: the first one has the record locked while the second one arrives."""
    portal = new_portal()
    taxpayer = TaxpayerFactory.create(tin="C2584563222", name="Old")
    etag = portal.etag(PATH)
    answers: list[HttpResponse] = []

    def change() -> None:
        answers.append(portal.patch(PATH, RENAME, If_Match=etag))

    with transaction.atomic():
        Taxpayer.objects.select_for_update().get(pk=taxpayer.pk)
        second = begin(change)
        wait_until_blocked()
        Taxpayer.objects.filter(pk=taxpayer.pk).update(name="First")
    end(second)
    assert_problem(answers[0], 412, "changed_meanwhile")
    assert Taxpayer.objects.get(pk=taxpayer.pk).name == "First"


def wait_until_blocked() -> None:
    """Returns when another session waits for a lock."""
    for _ in range(2_000):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(0.005), count(*) FROM pg_locks WHERE NOT granted")
            (_, waiting) = cursor.fetchone() or ("", 0)
        if waiting:
            return
    raise AssertionError("nobody waits")
