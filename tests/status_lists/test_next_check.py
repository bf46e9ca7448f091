"""When the tokens of an index are looked at again: who decides a login knows it (contract 2).

So a country that logs in for the first time in an hour leaves no queue of checks behind it.
"""

from datetime import datetime, timedelta

import pytest
from django.db import OperationalError, transaction

from taxpayers.models import Credential, RateLimitCounter, StatusChange, StatusIndex
from tests.support.databases import another_session
from tests.support.erp import Erp
from tests.support.moments import now
from tokens.calls import TakeStatusIndex
from tokens.store import django_store as store

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def take(
    erp: Erp,
    check_at: datetime | None,
    *,
    changed: bool = False,
) -> datetime | None:
    """The next check after a login by the present facts, or by those from before a change."""
    secret, counter = Credential.objects.get(), RateLimitCounter.objects.get()
    epoch = counter.epoch + changed
    call = TakeStatusIndex(
        *(erp.system_user.pk, secret.pk, erp.tin, "", ""), ("InvoicingAPI",), (), epoch, check_at
    )
    store.perform(call)
    row = StatusIndex.objects.first()
    return None if row is None else row.check_at


def test_by_facts_of_the_past_no_index_is_taken_and_none_is_changed(erp: Erp) -> None:
    assert take(erp, now(), changed=True) is None
    assert not StatusIndex.objects.exists()
    later = now() + HOUR
    assert take(erp, later) == later
    StatusIndex.objects.update(scopes={"Other": 1})
    assert take(erp, now(), changed=True) == later
    assert StatusIndex.objects.get().scopes == {"Other": 1}


@pytest.mark.parametrize(
    ("first", "second"), [(2 * HOUR, HOUR), (HOUR, 2 * HOUR), (None, HOUR), (HOUR, None)]
)
def test_the_earlier_of_two_checks_is_the_next(
    erp: Erp, first: timedelta | None, second: timedelta | None
) -> None:
    moment = now()
    for after in (first, second):
        take(erp, None if after is None else moment + after)
    assert StatusIndex.objects.get().check_at == moment + HOUR


BLOCK = "UPDATE system_users SET blocked_at = now(), blocked_by = 'x', blocked_reason = 'y'"


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_change_waits_until_the_index_is_taken_and_so_ends_it(erp: Erp) -> None:
    with another_session() as other, other.cursor() as cursor:
        cursor.execute("SET lock_timeout TO '200ms'")
        with transaction.atomic():
            take(erp, now() + HOUR)
            with pytest.raises(OperationalError):
                cursor.execute(BLOCK)
        cursor.execute(BLOCK)
    assert not StatusIndex.objects.exists()
    assert StatusChange.objects.filter(ended_index__isnull=False).exists()
