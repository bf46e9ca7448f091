"""An ERP system as tests see it: logs in and looks at the whole answer."""

import base64
import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import jwt
from django.conf import settings
from django.http import HttpResponse
from django.test import Client

from taxpayers.models import Intermediary, SystemUser
from tests.support.answers import UUID7, assert_error
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS

FORM = "application/x-www-form-urlencoded"
PATH = "/connect/token"


@dataclass
class Erp:
    """A client with its credentials; `login` sends a right request unless told otherwise."""

    client_id: str
    client_secret: str
    registered: SystemUser | None = None

    @property
    def system_user(self) -> SystemUser:
        """Its row; only an ERP of `new_erp` has one at hand."""
        assert self.registered is not None
        return self.registered

    @property
    def tin(self) -> str:
        """Its taxpayer, in the header's notation."""
        return str(self.system_user.taxpayer.identifier)

    @property
    def role(self) -> Intermediary:
        return self.system_user.taxpayer.intermediary

    @property
    def credentials(self) -> dict[str, str]:
        return {"client_id": self.client_id, "client_secret": self.client_secret}

    @property
    def form(self) -> dict[str, str]:
        return {"grant_type": "client_credentials", **self.credentials}

    @property
    def basic(self) -> str:
        pair = f"{self.client_id}:{self.client_secret}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"

    def login(self, *, on_behalf_of: Any = None, headers: Any = None, **form: Any) -> HttpResponse:
        """Posts the form; a parameter given as None is left out."""
        fields = {k: v for k, v in {**self.form, **form}.items() if v is not None}
        sent = {} if on_behalf_of is None else {"onbehalfof": on_behalf_of}
        return post(urlencode(fields), headers={**sent, **(headers or {})})


def post(
    body: str | bytes = b"",
    *,
    content_type: str = FORM,
    query: str = "",
    headers: dict[str, str] | None = None,
    **extra: Any,
) -> HttpResponse:
    path = f"{PATH}?{query}" if query else PATH
    return Client(raise_request_exception=False).post(  # type: ignore[return-value]
        path, data=body, content_type=content_type, headers=headers or {}, **extra
    )


def claims_of(response: HttpResponse) -> dict[str, Any]:
    """What the token says, and the answer with it; its signature is the matter of other tests."""
    token = json.loads(response.content)["access_token"]
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    assert response["X-Represented-Taxpayer"] == claims["sub"]
    age = datetime.fromisoformat(response["X-Renew-At"]).timestamp() - claims["iat"]
    assert 0.49 < age / (claims["exp"] - claims["iat"]) < 0.91
    return claims


def event_of(response: HttpResponse) -> LoginEvent:
    return LoginEvent.objects.get(pk=response["correlationId"])


def reason_of(response: HttpResponse) -> str:
    """Why the login was refused, as it is recorded; empty if there is a token."""
    return event_of(response).reason


def description_of(response: HttpResponse) -> str:
    text: str = json.loads(response.content)["error_description"]
    return text.partition(" Reference: ")[0]


def assert_every_answer(response: HttpResponse) -> str:
    """What holds for good and bad answers alike; returns the reference."""
    assert response["Content-Type"] == "application/json"
    assert response["Cache-Control"] == "no-store"
    assert response["Pragma"] == "no-cache"
    assert response["Content-Length"]  # without it the connection would close
    assert re.fullmatch(UUID7, response["correlationId"])
    assert not response.cookies
    for absent in ("WWW-Authenticate", "Location", "Set-Cookie", "Vary"):
        assert absent not in response
    return response["correlationId"]


def assert_refused(
    response: HttpResponse,
    *,
    reason: str,
    says: str,
    fixed_by: str = "",
    headers: dict[str, str] | None = None,
) -> None:
    """The whole answer, its record, and no header beyond those the contract names."""
    reference, row = assert_every_answer(response), REFUSALS[reason]
    error, body = str(row.error), json.loads(response.content)
    assert (response.status_code, response.reason_phrase) == (row.status, error)
    assert_error(body, error, says, reference)
    assert fixed_by in body["error_description"]
    assert response["Link"] == f'<{settings.AUTH_URL}/errors/{reason}>; rel="help"'
    named = {"Content-Type", "Content-Length", "Cache-Control", "Pragma", "correlationId", "Link"}
    assert set(response.headers) - named == set(headers or {})
    for name, value in (headers or {}).items():
        assert re.fullmatch(value, response[name]), (name, response[name])
    event = LoginEvent.objects.filter(pk=reference).first()
    if reason in ("rate_limited", "temporarily_unavailable"):
        assert event is None
    else:
        assert event is not None
        assert event.reason == reason


PAUSE = r"[5-9]|[1-9]\d|[12]\d\d|30\d"  # of a 503: spread, by how many there are


def assert_unavailable(response: HttpResponse, headers: dict[str, str] | None = None) -> None:
    """A 503; `headers` as for `assert_refused`, without Retry-After."""
    assert_refused(
        response,
        reason="temporarily_unavailable",
        says="try again",
        fixed_by="Nothing is wrong with the request",
        headers={"Retry-After": PAUSE} | (headers or {}),
    )


def new_erp(**system_user: Any) -> Erp:
    """A system user with one live secret; arguments are those of `SystemUserFactory`."""
    from tests.support import make

    user = make.system_user(**system_user)
    secret: Any = make.credential(system_user=user)
    return Erp(user.client_id, secret.clear, user)
