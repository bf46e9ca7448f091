"""An unknown id and a wrong secret take the same time (contract 1).

Statistical and generous: it asks how often the one takes longer than the other, for requests that
alternate, and is content with anything near a half. What it would see is a missing query, or a
slow hash that only one of the two pays: half a millisecond is enough.
"""

import time
from itertools import product

import pytest
from django.test import RequestFactory

from taxpayers.credentials import new_client_id, new_client_secret
from tests.erp import FORM, PATH, Erp, new_erp
from tokens.views import token_view

pytestmark = pytest.mark.django_db

PAIRS = 250
ERP_SYSTEMS = 25  # so that none of them fails often enough to have to wait


def seconds(client_id: str, address: str) -> float:
    body = (
        f"grant_type=client_credentials&client_id={client_id}"
        f"&client_secret={new_client_secret('test')}"
    )
    request = RequestFactory().post(PATH, body, content_type=FORM, REMOTE_ADDR=address)
    begin = time.perf_counter()
    response = token_view(request)
    spent = time.perf_counter() - begin
    assert response.status_code == 400
    assert b"client_id or client_secret is wrong" in response.content
    return spent


def how_often_longer(some: list[float], others: list[float]) -> float:
    """The share of pairs in which the first takes longer: a half if there is no difference."""
    return sum(a > b for a, b in product(some, others)) / (len(some) * len(others))


def test_an_unknown_id_and_a_wrong_secret_take_the_same_time() -> None:
    erps: list[Erp] = [new_erp() for _ in range(ERP_SYSTEMS)]
    known, unknown = [], []
    for n in range(PAIRS):
        address = f"10.0.{n}.1"  # failures of one address slow that address down
        known.append(seconds(erps[n % ERP_SYSTEMS].client_id, address))
        unknown.append(seconds(new_client_id("test"), address))
    share = how_often_longer(known, unknown)
    assert 0.25 < share < 0.75, share


def test_the_measure_sees_a_difference_where_there_is_one() -> None:
    assert how_often_longer([3.0, 4.0], [1.0, 2.0]) == 1.0
