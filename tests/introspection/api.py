"""A protected API as tests see it: asks whether tokens are active."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import jwt
from django.http import HttpResponse
from django.test import Client

from taxpayers.credentials import IDS, Prefix, new_client_id, new_client_secret
from tests.support.answers import UUID7, body_of, headers_of
from tests.support.erp import FORM, Erp
from tests.support.moments import why
from tokens.keys.ring import generate
from tokens.models import ProtectedApi
from tokens.protected_apis.registration import register_protected_api

INTROSPECT, REVOKE = "/connect/introspect", "/connect/revocation"
INACTIVE = {"active": False}


@dataclass
class Api:
    registered: ProtectedApi
    client_id: str
    client_secret: str = field(repr=False)

    @property
    def form(self) -> dict[str, str]:
        return {"client_id": self.client_id, "client_secret": self.client_secret}

    def introspect(self, token: Any, *, headers: Any = None, **form: Any) -> HttpResponse:
        """Posts the form; a parameter given as None is left out."""
        return post(INTROSPECT, {**self.form, "token": token, **form}, headers=headers)


def another(credential: str) -> str:
    """One of the same kind that was never issued."""
    kind = Prefix(credential[:2])
    return (new_client_id if kind in IDS else new_client_secret)("test", kind)


def new_api(name: str = "Invoicing", audience: str = "InvoicingAPI") -> Api:
    issued = register_protected_api(name=name, audience=audience, **why())
    credentials = issued.credentials
    return Api(issued.protected_api, credentials.client_id, credentials.client_secret)


def revoke(erp: Erp, token: Any, **form: Any) -> HttpResponse:
    """The client ends this token; a parameter given as None is left out."""
    return post(REVOKE, {**erp.credentials, "token": token, **form})


def token_of(erp: Any, **login: Any) -> str:
    token: str = body_of(erp.login(**login))["access_token"]
    return token


def assert_headers(
    response: HttpResponse, content_type: str = "application/json", **more: str
) -> str:
    """Those of every answer, and these; returns the reference."""
    reference = response["correlationId"]
    assert re.fullmatch(UUID7, reference)
    found = headers_of(response)
    found.pop("Link", None)  # of some refusals
    assert found == {
        "Content-Type": content_type,
        "Cache-Control": "no-store",
        "Pragma": "no-cache",
        "correlationId": reference,
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    return reference


def claims_of(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


def forged(token: str) -> str:
    header = jwt.get_unverified_header(token)
    return jwt.encode(claims_of(token), generate("ES256"), "ES256", header)


def post(
    path: str, form: dict[str, Any] | str | bytes, *, content_type: str = FORM, headers: Any = None
) -> HttpResponse:
    if isinstance(form, dict):
        form = urlencode({name: value for name, value in form.items() if value is not None})
    return Client(raise_request_exception=False).post(  # type: ignore[return-value]
        path, data=form, content_type=content_type, headers=headers or {}
    )
