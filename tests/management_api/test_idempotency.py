"""`Idempotency-Key`: nothing is done twice. `ETag` and `If-Match`: no update is lost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.http import HttpResponse
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from identity.api.framework.idempotency import answer_before, answer_to
from identity.api.models import StoredAnswer
from taxpayers.models import Change, SystemUser, Taxpayer
from tests.management_api.portal import Portal, assert_ok, assert_problem, new_portal
from tests.support import make
from tests.support.answers import body_of, headers_of
from tests.support.at_once import begin, end
from tests.support.outages import writing_fails

pytestmark = pytest.mark.django_db
KEY = '"8e03978e-40d5-43e8-bc93-6894a57f9324"'
NEW = {"taxpayer": "C2584563222", "name": "Aminah"}


def repeated(answer: HttpResponse) -> bool:
    return answer.get("Idempotent-Replayed") == "true"


def without_ids(answer: HttpResponse) -> dict[str, str]:
    changing = {"correlationId", "Idempotent-Replayed"}
    return {k: v for k, v in headers_of(answer).items() if k not in changing}


def test_a_repeated_request_gets_the_same_answer_and_changes_nothing(portal: Portal) -> None:
    first = portal.post("/taxpayers", NEW, Idempotency_Key=KEY)
    assert_ok(first, 201)
    assert not repeated(first)
    Taxpayer.objects.filter(tin="C2584563222").update(name="Changed meanwhile")
    again = portal.post("/taxpayers", dict(reversed(NEW.items())), Idempotency_Key=KEY)
    assert repeated(again)
    assert (again.status_code, body_of(again)) == (201, body_of(first))
    assert without_ids(again) == without_ids(first)
    assert again["correlationId"] != first["correlationId"]
    assert repeated(portal.post("/taxpayers", NEW, Idempotency_Key=KEY.strip('"')))
    # A key is of one client.
    assert not repeated(new_portal().post("/taxpayers", NEW, Idempotency_Key=KEY))
    assert Change.objects.count() == 1


def test_a_task_is_repeated_though_its_etag_is_old_by_then(portal: Portal) -> None:
    make.taxpayer(tin="C2584563222")
    path = "/taxpayers/C2584563222"
    headers = {"If_Match": portal.etag(path), "Idempotency_Key": KEY}
    first = portal.post(f"{path}/deactivate", {"reason": "x"}, **headers)
    again = portal.post(f"{path}/deactivate", {"reason": "x"}, **headers)
    assert assert_ok(first) == assert_ok(again)
    assert again["ETag"] == first["ETag"]
    assert repeated(again)


@pytest.mark.parametrize("task", ["create", "rotate"])
def test_a_secret_is_neither_stored_nor_repeated(portal: Portal, task: str) -> None:
    taxpayer = make.taxpayer(tin="C2584563222")
    path, body = "/system-users", NEW | {"name": "ERP", "reason": "a test"}
    headers = {"Idempotency_Key": KEY}
    if task == "rotate":
        user = SystemUser.objects.create(client_id="ci_test_abc", taxpayer=taxpayer, name="ERP")
        path, body = f"/system-users/{user.client_id}/rotate-secret", {"reason": "a test"}
        headers["If_Match"] = "*"
    first, again = (body_of(portal.post(path, body, **headers)) for _ in range(2))
    secret = first["issued"]["client_secret"]
    assert secret.startswith("cs_test_")
    assert again["issued"].pop("client_secret") is None
    note = again["issued"].pop("note")
    assert "shown in the first answer to this request, and is stored nowhere" in note
    assert "POST .../rotate-secret with a new Idempotency-Key" in note
    del first["issued"]["client_secret"], first["issued"]["note"]
    assert again == first
    row = StoredAnswer.objects.get()
    assert secret not in str([row.body, row.headers])
    assert SystemUser.objects.get(client_id=first["client_id"]).credentials.count() == 1


def test_the_same_key_for_another_request_is_a_422(portal: Portal) -> None:
    make.taxpayer(tin="C1000000001")
    assert_ok(portal.post("/taxpayers", NEW, Idempotency_Key=KEY), 201)
    others: list[tuple[str, Any]] = [
        ("/taxpayers", NEW | {"name": "Another"}),
        ("/taxpayers/C1000000001/deactivate", {"reason": "x"}),
    ]
    for path, body in others:
        answer = portal.post(path, body, Idempotency_Key=KEY, If_Match="*")
        assert_problem(answer, 422, "key_used_before", "Use a new key for each new request")
    assert Change.objects.count() == 1


def test_what_was_refused_is_tried_again(portal: Portal) -> None:
    new = {"taxpayer": "C2584563222", "name": "ERP", "reason": "a test"}
    refused = portal.post("/system-users", new, Idempotency_Key=KEY)
    assert_problem(refused, 422, "change_refused")
    make.taxpayer(tin="C2584563222")
    assert_ok(portal.post("/system-users", new, Idempotency_Key=KEY), 201)


def test_a_change_whose_answer_cannot_be_stored_is_not_made(portal: Portal) -> None:
    with writing_fails("management_answers"):
        answer = portal.post("/taxpayers", NEW, Idempotency_Key=KEY)
    assert_problem(answer, 503, "temporarily_unavailable", Retry_After="5")
    assert not Taxpayer.objects.filter(tin="C2584563222").exists()
    assert not Change.objects.exists()


def test_an_answer_is_stored_for_a_day_and_deleted_by_later_requests(portal: Portal) -> None:
    assert_ok(portal.post("/taxpayers", NEW, Idempotency_Key=KEY), 201)
    age(timedelta(hours=23, minutes=59))
    assert repeated(portal.post("/taxpayers", NEW, Idempotency_Key=KEY))
    age(timedelta(minutes=1))
    answer = portal.post("/taxpayers", NEW, Idempotency_Key=KEY)
    assert not repeated(answer)
    assert assert_ok(answer)["taxpayer"] == "C2584563222"  # 200: it is registered
    age(timedelta(hours=24))
    portal.post("/taxpayers", NEW, Idempotency_Key='"another"')
    assert StoredAnswer.objects.count() == 1


def age(by: timedelta) -> None:
    row = StoredAnswer.objects.get()
    row.stored_at -= by
    row.save()


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_while_the_first_request_is_under_way_the_second_is_a_409() -> None:
    """Two connections: the first one has the key, and has not ended its transaction."""
    portal = new_portal()
    answers: list[HttpResponse] = []

    def second() -> None:
        answers.append(portal.post("/taxpayers", NEW, Idempotency_Key=KEY))

    sent = APIRequestFactory().post(
        "/api/v1/management/taxpayers", NEW, "json", HTTP_IDEMPOTENCY_KEY=KEY
    )
    first = answer_to(Request(sent, [JSONParser()]), portal.erp.client_id)
    assert first is not None
    with transaction.atomic():
        assert answer_before(first, datetime.now(UTC)) is None
        end(begin(second))
    assert_problem(answers[0], 409, "request_in_progress", Retry_After="1")
    second()
    assert_ok(answers[1], 201)


PATH = "/taxpayers/C2584563222"
RENAME = {"name": "New", "reason": "merger"}


@pytest.fixture
def taxpayer(db: None) -> Taxpayer:
    return make.taxpayer(tin="C2584563222", name="Old")


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
    taxpayer = make.taxpayer(tin="C2584563222", name="Old")
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
    for _ in range(2_000):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(0.005), count(*) FROM pg_locks WHERE NOT granted")
            (_, waiting) = cursor.fetchone() or ("", 0)
        if waiting:
            return
    raise AssertionError("no session waits")
