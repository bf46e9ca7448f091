"""Introspections and revocations on the event loop: many at once, with the same answers."""

import json
from urllib.parse import urlencode

import pytest

from taxpayers.models import SystemUser
from tests.endpoint.test_event_loop import Sent, answers_to
from tests.introspection.api import INACTIVE, INTROSPECT, REVOKE, Api, another, claims_of, token_of
from tests.lanes.calls import note_batches
from tests.support import make
from tests.support.erp import new_erp
from tokens.models import FailureBucket, RevokedToken

pytestmark = pytest.mark.django_db(transaction=True)


def asked(api: Api, token: str, **form: str) -> Sent:
    return Sent(urlencode(api.form | {"token": token} | form).encode(), path=INTROSPECT)


@pytest.mark.usefixtures("later_in_the_minute")
def test_each_of_many_introspections_gets_the_answer_of_its_own_token(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [new_erp() for _ in range(4)]
    intermediary = new_erp(taxpayer=make.intermediary().taxpayer)
    granted = make.permission(intermediary=intermediary.role)
    represented = str(granted.taxpayer.identifier)
    tokens = [token_of(erp) for erp in clients]
    tokens.append(token_of(intermediary, on_behalf_of=represented))
    SystemUser.objects.filter(pk=clients[1].system_user.pk).update(scopes="X")
    sizes = note_batches(monkeypatch, len)
    answers = answers_to([asked(api, token) for token in (*tokens, "no token")])
    assert sizes == [6], "one statement for all"
    bodies = [json.loads(answer.body) for answer in answers]
    assert [body["active"] for body in bodies] == [True, False, True, True, True, False]
    for token, body in zip(tokens, bodies, strict=False):
        assert body == INACTIVE or body["jti"] == claims_of(token)["jti"]
    assert (bodies[4]["sub"], len(bodies[4]["permissions"])) == (represented, 2)


def test_a_revocation_is_stored_before_its_answer_and_seen_by_the_next_introspection(
    api: Api,
) -> None:
    erp = new_erp()
    token = token_of(erp)
    own = erp.credentials
    ended = Sent(urlencode(own | {"token": token}).encode(), path=REVOKE)
    (first, second) = answers_to([ended, ended])
    assert (first.status, first.body, second.status) == (200, b"", 200)
    assert RevokedToken.objects.count() == 1
    (answer,) = answers_to([asked(api, token)])
    assert json.loads(answer.body) == INACTIVE
    assert answer.headers["Content-Type"] == "application/json"


def test_the_signed_form_and_a_failure_are_answered_there_too(api: Api) -> None:
    token = token_of(new_erp())
    signed = Sent(
        asked(api, token).body,
        path=INTROSPECT,
        headers={"Accept": "application/token-introspection+jwt"},
    )
    wrong = asked(api, token, client_secret=another(api.client_secret))
    answers = answers_to([signed, wrong])
    assert answers[0].headers["Content-Type"] == "application/token-introspection+jwt"
    assert (answers[1].status, answers[1].reason) == (401, "invalid_client")
    assert FailureBucket.objects.count() == 2
