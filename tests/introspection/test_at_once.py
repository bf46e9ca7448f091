"""Introspections and revocations on the event loop: many at once, with the same answers."""

import json
from dataclasses import replace
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
    represented = str(make.permission(intermediary=intermediary.role).taxpayer.identifier)
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


def test_an_end_is_stored_before_its_answer_and_each_form_of_an_answer_is_sent(api: Api) -> None:
    erp = new_erp()
    token = token_of(erp)
    ended = Sent(urlencode(erp.credentials | {"token": token}).encode(), path=REVOKE)
    (first, second) = answers_to([ended, ended])
    assert (first.status, first.body, second.status) == (200, b"", 200)
    assert RevokedToken.objects.count() == 1
    inactive = asked(api, token)
    signed = replace(inactive, headers={"Accept": "application/token-introspection+jwt"})
    wrong = asked(api, token, client_secret=another(api.client_secret))
    answers = answers_to([inactive, signed, wrong])
    assert json.loads(answers[0].body) == INACTIVE
    types = [answer.headers["Content-Type"] for answer in answers]
    json_type, signed_type = "application/json", "application/token-introspection+jwt"
    assert types == [json_type, signed_type, json_type]
    assert (answers[2].status, answers[2].reason) == (401, "invalid_client")
    assert FailureBucket.objects.count() == 2
