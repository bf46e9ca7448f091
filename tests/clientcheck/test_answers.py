"""The answers of the client check are those of the real service, so they cannot drift apart."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from clientcheck import clientcheck
from clientcheck.clientcheck import FORM, NEW_SECRET, OWN, REPRESENTED, SECRET, Answer, Authority
from identity.sandbox.registry import make_sandbox
from taxpayers.models import Intermediary
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName
from tests.introspection.api import claims_of
from tests.support import make
from tests.support.erp import PATH, Erp, new_erp

AT = 1_800_000_000.0
GRANT = {"grant_type": "client_credentials"}
IDS = {"client_id": clientcheck.CLIENT_ID, "client_secret": SECRET}

pytestmark = pytest.mark.django_db


@dataclass
class Sent:
    form: dict[str, str] = field(default_factory=lambda: dict(GRANT))
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "POST"
    content_type: str = FORM
    query: str = ""
    without: str = ""


def to_client_check(sent: Sent, authority: Authority, **ids: str) -> Answer:
    form = {k: v for k, v in {**sent.form, **IDS, **ids}.items() if k != sent.without}
    headers = [("Content-Type", sent.content_type), *sent.headers.items()]
    body = urlencode(form).encode()
    return authority.handle(clientcheck.Request(sent.method, PATH, sent.query, headers, body, AT))


def to_service(sent: Sent, erp: Erp) -> HttpResponse:
    form = {k: v for k, v in {**sent.form, **erp.credentials}.items() if k != sent.without}
    path = f"{PATH}?{sent.query}" if sent.query else PATH
    answer = Client().generic(
        sent.method, path, urlencode(form), sent.content_type, headers=sent.headers
    )
    assert isinstance(answer, HttpResponse)
    return answer


def shape(status: int, reason: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """All that does not depend on the moment: values of headers that are the same for everybody."""
    fixed = ("Content-Type", "Cache-Control", "Pragma", "Allow", "X-Represented-Taxpayer")
    data = json.loads(body)
    text = data.pop("error_description", "")
    text = re.sub(r"Reference: [0-9a-f-]{36}$", "Reference: …", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(UTC.\d{4}\)", "DATE", text)
    link = headers.get("Link", "").rpartition("/errors/")[2]
    token = data.pop("access_token", None)
    return {
        "status": status,
        "reason": reason,
        "headers": sorted(headers),
        "values": {name: headers[name] for name in fixed if name in headers},
        "link": link,
        "error": data.get("error"),
        "text": text,
        "body": {name: type(value).__name__ for name, value in data.items()},
        "token": token and shape_of_token(token),
    }


def shape_of_token(token: str) -> dict[str, Any]:
    claims = claims_of(token)
    return {
        "header": {**jwt.get_unverified_header(token), "kid": "…"},
        "claims": sorted(claims),
        "status": sorted(claims["status"]["status_list"]),
        "values": {name: claims[name] for name in ("aud", "scope", "sub", "taxpayer")},
        "permissions": claims.get("permissions"),
    }


def assert_same(ours: Answer, real: HttpResponse) -> None:
    assert shape(*ours[:4]) == shape(
        real.status_code, real.reason_phrase, dict(real.headers), real.content
    )


@pytest.fixture
def agent() -> Erp:
    role = Intermediary.objects.create(taxpayer=make.taxpayer(tin=OWN))
    for named in REPRESENTED:
        tin, _, rob = named.partition(":")
        make.permission(taxpayer=make.taxpayer(tin=tin, rob=rob), intermediary=role)
    return new_erp(taxpayer=role.taxpayer)


@pytest.mark.parametrize(
    "sent",
    [
        Sent(),
        *(Sent(headers={"onbehalfof": taxpayer}) for taxpayer in REPRESENTED),
        Sent(method="GET"),
        Sent(content_type="application/json"),
        Sent(query="client_secret=x"),
        Sent(without="client_secret"),
        Sent(without="client_id"),
        Sent(without="grant_type"),
        Sent(form={"grant_type": "password"}),
        Sent(form=GRANT | {"onbehalfof": OWN}),
        Sent(headers={"On-Behalf-Of": OWN}),
        Sent(headers={"onbehalfof": ""}),
        Sent(headers={"onbehalfof": f"{OWN},{OWN}"}),
        Sent(headers={"onbehalfof": "C9999999999"}),
    ],
    ids=str,
)
def test_a_token_or_refusal_is_as_the_real_one(agent: Erp, sent: Sent) -> None:
    assert_same(to_client_check(sent, Authority()), to_service(sent, agent))


def test_a_wrong_and_an_ended_secret_are_refused_as_by_the_real_one(agent: Erp) -> None:
    wrong = CREDENTIALS[SandboxName.WORKS].client_secret
    ours = to_client_check(Sent(), Authority(), client_secret=wrong)
    assert_same(ours, to_service(Sent(), Erp(agent.client_id, NEW_SECRET)))
    yesterday = timezone.now() - timedelta(days=1)
    agent.system_user.credentials.update(
        created_at=yesterday - timedelta(days=1), expires_at=yesterday
    )
    ours = to_client_check(Sent(), Authority(end_secret_after=0))
    assert_same(ours, to_service(Sent(), agent))


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (clientcheck.Fault.LIMIT, SandboxName.RATE_LIMITED),
        (clientcheck.Fault.DOWN, SandboxName.TEMPORARILY_UNAVAILABLE),
    ],
)
def test_what_passes_by_itself_is_as_the_real_one(fault: str, name: str) -> None:
    make_sandbox(timezone.now())
    credentials = CREDENTIALS[name]
    real = to_service(Sent(), Erp(credentials.client_id, credentials.client_secret))
    assert_same(to_client_check(Sent(), Authority(plan={1: fault})), real)
