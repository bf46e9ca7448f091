"""An intermediary that asks, a taxpayer that decides, and the portal between them."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection
from django.http import HttpResponse
from django.test.utils import CaptureQueriesContext

from taxpayers.evidence import Evidence, EvidenceKind
from taxpayers.models import PermissionRequest
from tests.introspection.api import token_of
from tests.management_api.portal import SCOPES, send
from tests.support import make
from tests.support.answers import body_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import SUBMIT, VIEW
from tests.support.moments import now

ASK = "/api/v1/permission-requests"
RETURN = "https://agent.example.org/done?case=7"
ALL_SCOPES = {
    **SCOPES,
    **{
        scope: {"description": scope, "audience": "IdentityAPI"}
        for scope in ("PermissionRequestAPI", "RepresentativeAPI")
    },
}
SIGN_IN: dict[str, Any] = {
    "approved_by": "p-1",
    "capacity": "director",
    "sign_in_method": "national id",
    "sign_in_level": "high",
    "words_version": "portal-1",
    "words_hash": "sha256:0f",
}
SIGNED_IN = Evidence(EvidenceKind.SIGN_IN, **SIGN_IN)


def new_agent(**fields: Any) -> Erp:
    taxpayer = make.intermediary().taxpayer
    scopes = "InvoicingAPI PermissionRequestAPI"
    return new_erp(**{"taxpayer": taxpayer, "scopes": scopes, "return_addresses": RETURN} | fields)


def ask(agent: Erp, tin: str, token: str = "", **body: Any) -> HttpResponse:
    sent = {"taxpayer": tin, "permissions": [SUBMIT, VIEW], **body}
    return send("POST", ASK, token or token_of(agent), sent)


def asked(agent: Erp, tin: str, **body: Any) -> PermissionRequest:
    answer = ask(agent, tin, **body)
    assert answer.status_code == 202, answer.content
    return PermissionRequest.objects.get(pk=body_of(answer)["id"])


def make_late(row: PermissionRequest) -> None:
    PermissionRequest.objects.filter(pk=row.pk).update(expires_at=now() - timedelta(seconds=1))


def look_of(ask_of: Callable[[str], Any], tin: str) -> tuple[Any, ...]:
    """All that tells the answer from others: its bytes, and its statements, which take the time."""
    with CaptureQueriesContext(connection) as queries:
        answer = ask_of(tin)
    body, masked = body_of(answer), answer.content.decode()
    for value in (body["id"], tin, body["asked_at"], body["expires_at"]):
        masked = masked.replace(value, "*")
    texts = (query["sql"] for query in queries.captured_queries)
    # Keys are read again every few seconds.
    own = [re.sub(r"'[^']*'|\d+", "?", text) for text in texts if "signing_keys" not in text]
    assert not [one for one in own if '"taxpayers"."tin"' in one.partition("WHERE")[2]]
    headers = tuple(sorted({*answer.headers} - {"correlationId", "Location"}))
    return answer.status_code, masked, headers, tuple(own)
