"""The stand-in portal of the test environment: it takes everyone for the same person.

Its key is public, so its tickets decide for the taxpayer of the sandbox only, and what they approve
ends in a day.
"""

import hashlib
from datetime import datetime, timedelta
from urllib.parse import urlencode
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from jwt.algorithms import ECAlgorithm

from taxpayers.client_keys import PublicKey
from taxpayers.credentials import public_credentials
from taxpayers.identifiers import TaxpayerId
from tokens.http import error_response, read_only

PATH = "/sandbox/portal"
CLIENT_ID = public_credentials("sandbox portal").client_id
TAXPAYER = TaxpayerId("C9990000020")
KID = "sandbox-portal"
_KEY = derive_private_key(int.from_bytes(hashlib.sha256(KID.encode()).digest()), SECP256R1())
PUBLIC_KEY: PublicKey = _KEY.public_key()
_LONGEST = timedelta(days=1)
_FIVE_MINUTES = 300


def may_decide(portal: str, taxpayer: str) -> bool:
    """Whether this is the stand-in portal, and its ticket for its taxpayer."""
    return settings.ENVIRONMENT == "test" and (portal, taxpayer) == (CLIENT_ID, str(TAXPAYER))


def portal_url(taxpayer: TaxpayerId | None) -> str:
    """Where a person signs in for this taxpayer; empty: no portal can be led to."""
    if taxpayer == TAXPAYER and settings.ENVIRONMENT == "test":
        return f"{settings.AUTH_URL}{PATH}"
    return str(settings.PORTAL_URL)


def end_of_approval(portal: str, until: datetime | None, at: datetime) -> datetime | None:
    """Until when it is approved; `until`: as asked, or less. None: no end."""
    if portal != CLIENT_ID:
        return until
    return min(until or at + _LONGEST, at + _LONGEST)


@read_only
def portal(request: HttpRequest) -> HttpResponse:
    """Signs everyone in, and leads back with a ticket for `request`."""
    asked = request.GET.get("request", "")
    if not asked.isascii() or not asked.replace("-", "").isalnum():
        return error_response(400, "invalid_request", "Send the id of a request as request.")
    ticket = _new_ticket(asked, timezone.now())
    address = f"{settings.CONFIRM_URL}/{asked}?{urlencode({'ticket': ticket})}"
    return HttpResponseRedirect(address, headers={"Cache-Control": "no-store"})


def _new_ticket(asked: str, at: datetime) -> str:
    """A ticket of this moment, as docs/permission-requests.md describes it."""
    now = int(at.timestamp())
    claims = {
        "iss": CLIENT_ID,
        "aud": settings.CONFIRM_URL,
        "iat": now,
        "exp": now + _FIVE_MINUTES,
        "jti": str(uuid4()),
        "sub": "sandbox-person",
        "taxpayer": str(TAXPAYER),
        "capacity": "director (sandbox)",
        "amr": ["none"],
        "acr": "sandbox",
        "request": asked,
    }
    headers = {"kid": KID, "typ": "portal-ticket+jwt"}
    return jwt.encode(claims, _KEY, algorithm="ES256", headers=headers)


def portal_as_json() -> dict[str, object]:
    """What `/sandbox.json` says of it; the key is for a stand-in portal of a developer's own."""
    return {
        "address": f"{settings.AUTH_URL}{PATH}",
        "taxpayer": str(TAXPAYER),
        "client_id": CLIENT_ID,
        "confirm_url": settings.CONFIRM_URL,
        "private_jwk": {**ECAlgorithm.to_jwk(_KEY, as_dict=True), "kid": KID},
    }
