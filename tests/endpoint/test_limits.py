"""Limits, as a client meets them: exact for logins, exponential for failures (contract 1)."""

import json

import pytest
from django.http import HttpResponse

from taxpayers.credentials import new_client_id, new_client_secret
from taxpayers.models import RateLimitCounter
from tests.support.erp import Erp, new_erp
from tokens.models import FailureBucket
from tokens.rate_limits.backoff import PAIR_BACKOFF


@pytest.mark.django_db
def test_failures_back_off_but_the_right_secret_always_works(erp: Erp) -> None:
    wrong = new_client_secret("test")
    answers = [erp.login(client_secret=wrong) for _ in range(PAIR_BACKOFF.free + 2)]
    assert [a.status_code for a in answers] == [400] * (PAIR_BACKOFF.free + 1) + [429]
    assert answers[-1]["Retry-After"] == "1"
    assert json.loads(answers[-1].content)["error"] == "invalid_request"
    right = erp.login()
    assert right.status_code == 200
    assert right["X-Rate-Limit-Remaining"] == "11"


@pytest.mark.django_db
def test_failures_of_unknown_and_known_ids_back_off_alike(erp: Erp) -> None:
    wrong, unknown = new_client_secret("test"), new_client_id("test")

    def statuses(**form: str) -> list[int]:
        return [erp.login(client_secret=wrong, **form).status_code for _ in range(13)]

    assert statuses() == statuses(client_id=unknown)


@pytest.mark.django_db
def test_a_backoff_says_what_was_wrong_and_who_can_fix_it(erp: Erp) -> None:
    def backed_off(**form: str) -> HttpResponse:
        secret = new_client_secret("test")
        answers = [erp.login(client_secret=secret, **form) for _ in range(PAIR_BACKOFF.free + 2)]
        return answers[-1]

    def text_of(response: HttpResponse) -> str:
        text: str = json.loads(response.content)["error_description"]
        return text.split(" Reference: ")[0]

    answer, of_unknown = backed_off(), backed_off(client_id=new_client_id("test"))
    assert text_of(answer) == text_of(of_unknown)
    assert "Too many failed logins" in text_of(answer)
    assert "operator of the ERP system must compare client_id and client_secret" in text_of(answer)
    assert "reuse" not in text_of(answer)
    for response in (answer, of_unknown):
        assert response.status_code == 429
        assert response.reason_phrase == json.loads(response.content)["error"] == "invalid_request"
        assert response["Retry-After"] == "1"
        # One failed login is accepted after each pause.
        assert response["X-Rate-Limit-Limit"] == "1"
        assert response["X-Rate-Limit-Remaining"] == "0"
        assert "X-Rate-Limit-Reset" in response


@pytest.mark.django_db
def test_failures_write_to_a_table_of_a_fixed_size(erp: Erp) -> None:
    for _ in range(20):
        erp.login(client_id=new_client_id("test"))
    assert FailureBucket.objects.count() <= 21
    assert max(FailureBucket.objects.values_list("id", flat=True)) < 131_072
    assert RateLimitCounter.objects.get().used == 0


@pytest.mark.django_db
def test_each_client_has_its_own_limit() -> None:
    for limit in (2, 30):
        erp = new_erp(logins_per_minute=limit)
        statuses = [erp.login().status_code for _ in range(limit + 1)]
        assert statuses == [200] * limit + [429]


@pytest.mark.django_db
def test_a_client_without_a_limit_gets_no_limit_headers() -> None:
    response = new_erp(logins_per_minute=0).login()
    assert response.status_code == 200
    assert "X-Rate-Limit-Limit" not in response
    assert RateLimitCounter.objects.get().used == 1


@pytest.mark.django_db
def test_the_limit_is_checked_before_the_block(blocked: Erp) -> None:
    statuses = [blocked.login().status_code for _ in range(13)]
    assert statuses == [400] * 12 + [429]
