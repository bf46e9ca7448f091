"""`GET /api/v1/me` on an event loop: the same answers as through Django (contract 2)."""

import pytest
from django.conf import settings
from django.test import Client

from taxpayers.services import block_system_user
from tests.dpop.dpop_erp import new_dpop_erp
from tests.endpoint.test_event_loop import Answer, Sent, answers_to
from tests.introspection.api import token_of
from tests.support.erp import new_erp
from tests.support.moments import why
from tests.support.outages import database_out_of_reach
from tokens.dpop.proof import hash_of_token

# The connections of the event loop see only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)
ME = "/api/v1/me"


def me(authorization: str, method: str = "GET", **headers: str) -> Sent:
    return Sent(b"", method, {"Authorization": authorization, **headers}, path=ME)


def through_django(sent: Sent) -> Answer:
    answer = Client().generic(sent.method, ME, headers=sent.headers)
    return Answer(answer.status_code, answer.reason_phrase, dict(answer.headers), answer.content)


def test_the_event_loop_answers_as_django_does() -> None:
    blocked = new_erp()
    token, ended = token_of(new_erp()), token_of(blocked)
    block_system_user(system_user=blocked.system_user, **why())
    bound = new_dpop_erp().token()
    requests = [
        *(me(f"Bearer {token}"), me(f"bearer {token}", Accept="text/html")),
        *(me(f"Bearer {token}", "POST"), me(f"Bearer {ended}"), me(f"Bearer {token}x")),
        *(me(""), me(f"DPoP {token}"), me(f"Bearer {bound}"), me(f"DPoP {bound}", DPoP="x")),
    ]
    answers = answers_to(requests)
    assert [each.status for each in answers] == [200, 200, 405, *[401] * 6]
    assert answers == [through_django(each) for each in requests]
    (head,) = answers_to([me(f"Bearer {token}", "HEAD")])
    assert (head.headers, head.body) == (answers[0].headers, b"")


def test_a_proof_opens_once() -> None:
    erp = new_dpop_erp()
    token = erp.token()
    address, of_token = f"{settings.AUTH_URL}{ME}", hash_of_token(token)
    proof = erp.proof(htm="GET", htu=address, ath=of_token, nonce=None)
    answers = answers_to([me(f"DPoP {token}", DPoP=proof)] * 3)
    assert sorted(each.status for each in answers) == [200, 401, 401]


def test_without_the_database_it_is_a_503_and_no_token_counts_as_ended() -> None:
    token = token_of(new_erp())
    with database_out_of_reach():
        answer = through_django(me(f"Bearer {token}"))
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert b"Nothing is wrong with the request" in answer.body
