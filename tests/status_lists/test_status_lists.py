"""`GET /status/…`: APIs that never ask refuse tokens of a client that was ended (contract 2)."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, transaction
from django.db.models import F
from django.http import HttpResponse
from pytest_django.fixtures import Settings

from taxpayers.models import (
    Credential,
    EndedStatusIndex,
    GrantedPermission,
    RateLimitCounter,
    StatusChange,
    StatusIndex,
    SystemUser,
)
from taxpayers.services import block_system_user, grant_permission, revoke_credential
from tests.introspection.api import token_of
from tests.status_lists.reader import (
    bits_of,
    get,
    is_ended,
    read_list,
    reference_of,
    use_up_the_reserve,
)
from tests.support import make
from tests.support.answers import body_of, headers_of
from tests.support.databases import another_session
from tests.support.erp import Erp, new_erp
from tests.support.factories import SUBMIT, VIEW
from tests.support.moments import by, now, why
from tests.support.outages import database_out_of_reach
from tokens.access_tokens.claims import LIST_LENGTH
from tokens.calls import TakeStatusIndex
from tokens.status_lists import publication
from tokens.status_lists.format import REUSED_AFTER, SET_FOR, TTL
from tokens.status_lists.publication import READ_EVERY_SECONDS, forget_status_lists
from tokens.store import django_store as store

pytestmark = pytest.mark.django_db

DAY, LIST = timedelta(days=1), "/status/0"
PUBLIC = {
    "Content-Type": "application/statuslist+jwt",
    "Cache-Control": "public, max-age=1",
    "Access-Control-Allow-Origin": "*",
}


def represented_by(intermediary: Erp, **permission: Any) -> str:
    return str(make.permission(intermediary=intermediary.role, **permission).taxpayer.identifier)


def test_tokens_of_one_secret_for_one_taxpayer_have_one_index(intermediary: Erp) -> None:
    first, second = (represented_by(intermediary) for _ in range(2))
    references = [
        reference_of(token_of(erp, on_behalf_of=taxpayer))
        for erp in (intermediary, new_erp())
        for taxpayer in ((None, first, second) if erp is intermediary else (None,))
        for _ in range(2)
    ]
    assert references[::2] == references[1::2]
    assert len(set(references)) == 4
    assert {uri for uri, _idx in references} == {"http://127.0.0.1:8000/status/0"}


def test_a_token_that_may_do_more_has_the_same_index_and_the_row_says_so(intermediary: Erp) -> None:
    tin = represented_by(intermediary, codes=[SUBMIT])
    first = token_of(intermediary, on_behalf_of=tin)
    taxpayer = GrantedPermission.objects.get().taxpayer
    grant_permission(taxpayer=taxpayer, intermediary=intermediary.role, codes=[VIEW], **by())
    assert reference_of(first) == reference_of(token_of(intermediary, on_behalf_of=tin))
    row = StatusIndex.objects.get()
    assert (set(row.permissions), set(row.scopes)) == ({SUBMIT, VIEW}, {"InvoicingAPI"})
    assert (row.tin, row.actor) == (tin, intermediary.tin)
    assert not is_ended(first)


def test_time_alone_sets_the_bit_without_a_login_or_a_change(erp: Erp) -> None:
    token = token_of(erp)
    SystemUser.objects.update(expires_at=now() + DAY)
    assert not is_ended(token)
    assert StatusIndex.objects.get().check_at == SystemUser.objects.get().expires_at
    # The same a day later.
    past = now() - timedelta(seconds=1)
    SystemUser.objects.update(expires_at=past)
    StatusChange.objects.all().delete()
    assert not is_ended(token)
    StatusIndex.objects.update(check_at=past)
    assert is_ended(token)


def test_an_index_that_cannot_be_checked_ends_and_holds_up_no_other(
    erp: Erp, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, other, good = token_of(new_erp()), token_of(erp), token_of(new_erp())
    use = StatusIndex.objects.filter(pk=reference_of(damaged)[1])
    use.update(scopes=["not an object"], check_at=now() - DAY)
    block_system_user(system_user=erp.system_user, **why())
    assert [is_ended(token) for token in (damaged, other, good)] == [True, True, False]
    assert "a status index cannot be checked: it ends" in caplog.messages
    caplog.clear()
    StatusIndex.objects.filter(pk=reference_of(good)[1]).update(secret_id=0, check_at=now() - DAY)
    assert is_ended(good), "its secret is gone"
    assert caplog.messages == []


def test_an_index_is_used_again_only_when_all_its_tokens_have_expired(erp: Erp) -> None:
    old = token_of(erp)
    revoke_credential(credential=Credential.objects.get(), **why())
    assert is_ended(old)
    assert REUSED_AFTER > SET_FOR > timedelta(hours=1)
    EndedStatusIndex.objects.update(ended_at=now() - SET_FOR + timedelta(minutes=1))
    assert is_ended(old)
    assert reference_of(token_of(new_erp())) != reference_of(old)
    EndedStatusIndex.objects.update(ended_at=now() - REUSED_AFTER - timedelta(seconds=1))
    assert not is_ended(old), "all its tokens have expired"
    use_up_the_reserve()
    assert reference_of(token_of(new_erp())) == reference_of(old)
    assert not EndedStatusIndex.objects.exists()


def test_a_bit_is_cleared_by_a_process_that_goes_on(
    erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, (uri, idx) = token_of(erp), reference_of(token_of(erp))
    block_system_user(system_user=erp.system_user, **why())
    assert is_ended(token)
    monkeypatch.setattr(publication, "READ_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(publication, "SET_FOR", timedelta(0))
    assert bits_of(read_list(uri, get(LIST)))[idx // 8] == 0


@pytest.mark.parametrize("column", ["index", "version"])
def test_a_node_that_remembers_an_index_that_is_not_there_does_not_use_it(
    column: str, erp: Erp
) -> None:
    """As after a backup was restored in which nothing else of this client is different."""
    token_of(erp)
    StatusIndex.objects.update(**{column: F(column) + 5, "scopes": {}})
    token = token_of(erp)
    row = StatusIndex.objects.get()
    assert reference_of(token)[1] == row.index
    assert set(row.scopes) == {"InvoicingAPI"}


def test_no_index_is_given_twice_while_its_end_waits(erp: Erp) -> None:
    first = token_of(erp)
    StatusIndex.objects.all().delete()
    assert StatusChange.objects.filter(ended_index__isnull=False).count() == 1
    others = [token_of(new_erp()) for _ in range(3)]
    assert reference_of(first) not in map(reference_of, others)


def test_the_answer_is_a_signed_list(erp: Erp, settings: Settings) -> None:
    settings.STATUS_LIST_HORIZON = timedelta(minutes=7)
    uri, _idx = reference_of(token_of(erp))
    answer = get(LIST, accept="text/html")
    assert headers_of(answer) == PUBLIC
    claims = read_list(uri, answer)
    assert claims["exp"] - claims["iat"] == 7 * 60
    assert (claims["ttl"], TTL) == (5, timedelta(seconds=5))
    assert abs(claims["iat"] - now().timestamp()) < 5
    assert claims["status_list"]["bits"] == 1
    assert len(bits_of(claims)) * 8 == LIST_LENGTH


def test_a_change_is_known_in_less_than_ten_seconds() -> None:
    """The longest way: read too late, cached, fetched again only after its time."""
    max_age = int(PUBLIC["Cache-Control"].partition("=")[2])
    reading = READ_EVERY_SECONDS + publication.ANSWER_SECONDS
    assert reading + max_age + TTL.total_seconds() < 9


def test_readers_cost_no_query_until_it_is_time_to_look_again(
    erp: Erp, django_assert_num_queries: Any
) -> None:
    token_of(erp)
    first = get(LIST)
    with django_assert_num_queries(0):
        assert [get(LIST).content for _ in range(3)] == [first.content] * 3


def test_where_the_lists_are_is_published(settings: Settings, erp: Erp) -> None:
    token_of(erp)
    settings.AUTH_URL = "https://id.example.org"
    answer = get("/status")
    assert headers_of(answer) == PUBLIC | {"Content-Type": "application/json"}
    assert body_of(answer) == {"status_lists": ["https://id.example.org/status/0"]}
    StatusIndex.objects.update(index=F("index") + 2 * LIST_LENGTH)
    forget_status_lists()
    assert len(body_of(get("/status"))["status_lists"]) == 3


def test_the_list_that_another_node_may_have_begun_is_published_too() -> None:
    assert set(bits_of(read_list("http://127.0.0.1:8000/status/1"))) == {0}


def test_there_is_no_other_list() -> None:
    for number in ("2", "00", "01", "-1", "+1", "1.0", "x", "%00", "٣", "9" * 6, "9" * 5000, "1/"):
        answer = get(f"/status/{number}")
        assert answer.status_code == 404
        assert "no-store" in answer["Cache-Control"], "the next list may begin at any moment"
        assert body_of(answer)["error"] == "not_found"


def assert_unavailable(answer: HttpResponse) -> None:
    assert answer.status_code == 503
    assert headers_of(answer) == {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "Retry-After": "1",
    }
    assert body_of(answer)["error"] == "temporarily_unavailable"


@pytest.mark.parametrize("is_kept_fresh", [True, False], ids=["by the thread", "when asked"])
def test_without_its_database_a_node_publishes_the_last_list_until_that_expires(
    erp: Erp, is_kept_fresh: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unchanged, with its old dates: never a new date on old facts."""
    uri, _idx = reference_of(token_of(erp))
    first = get(LIST)
    claims = read_list(uri, first)
    lists = publication.status_lists()
    lists.is_kept_fresh = is_kept_fresh
    read_at = lists._read_at
    life = claims["exp"] - claims["iat"]
    with database_out_of_reach():
        for age in (2.1, 600.0, life - 1.0):
            monkeypatch.setattr(publication, "uptime", lambda age=age: read_at + age)
            answer = get(LIST)
            assert (answer.content, headers_of(answer)) == (first.content, PUBLIC)
            assert get("/status").status_code == 200
        monkeypatch.setattr(publication, "uptime", lambda: read_at + life + 1.0)
        assert_unavailable(get(LIST))


HOUR = timedelta(hours=1)


def take(erp: Erp, check_at: datetime | None, *, changed: bool = False) -> datetime | None:
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
