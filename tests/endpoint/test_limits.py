"""Limits, as a client meets them: exact for logins, exponential for failures (contract 1)."""

import json

import pytest

from taxpayers.credentials import new_client_id, new_client_secret
from taxpayers.models import RateLimitCounter
from tests.support.erp import Erp
from tokens.models import FailureBucket
from tokens.rate_limits.backoff import PAIR_BACKOFF

pytestmark = pytest.mark.django_db


def test_failures_back_off_but_the_right_secret_always_works(erp: Erp) -> None:
    wrong = new_client_secret("test")
    answers = [erp.login(client_secret=wrong) for _ in range(PAIR_BACKOFF.free + 2)]
    assert [a.status_code for a in answers] == [400] * (PAIR_BACKOFF.free + 1) + [429]
    assert answers[-1]["Retry-After"] == "1"
    assert json.loads(answers[-1].content)["error"] == "invalid_request"
    right = erp.login()
    assert right.status_code == 200
    assert right["X-Rate-Limit-Remaining"] == "11"


def test_failures_of_unknown_and_known_ids_back_off_alike(erp: Erp) -> None:
    wrong, unknown = new_client_secret("test"), new_client_id("test")

    def answers(**form: str) -> list[tuple[int, str]]:
        found = [erp.login(client_secret=wrong, **form) for _ in range(13)]
        texts = [json.loads(answer.content)["error_description"] for answer in found]
        codes = [answer.status_code for answer in found]
        return list(zip(codes, (text.split(" Reference: ")[0] for text in texts), strict=True))

    assert answers() == answers(client_id=unknown)


def test_failures_write_to_a_table_of_a_fixed_size(erp: Erp) -> None:
    for _ in range(20):
        erp.login(client_id=new_client_id("test"))
    assert FailureBucket.objects.count() <= 21
    assert max(FailureBucket.objects.values_list("id", flat=True)) < 131_072
    assert RateLimitCounter.objects.get().used == 0
