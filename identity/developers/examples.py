"""Example answers of the login, made by what makes the real ones: only the login is invented."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache

from msgspec.structs import replace

from taxpayers.credentials import Fault
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.facts.values import ClientFacts, CredentialFacts, Facts
from taxpayers.identifiers import TaxpayerId
from taxpayers.models.system_user import DEFAULT_LOGINS_PER_MINUTE
from taxpayers.rules import Refused, RegistryReason
from tokens.answers.response import Answer, issued_answer, refused_answer
from tokens.client_auth.authenticated import AuthenticatedClient, Method
from tokens.client_auth.client_secret import ClientSecretCredentials, authenticate
from tokens.dpop.possession import NONCE_HEADER
from tokens.dpop.proof import ProofFault
from tokens.lifetime import TOKEN_LIFETIME
from tokens.rate_limits.quota import Quota
from tokens.rate_limits.throttle import RateLimited, Throttle, ThrottleCause
from tokens.refusals.table import NO_CREDENTIALS, REFUSALS, Check, ProtocolReason

AT = datetime(2026, 11, 22, 2, 0, tzinfo=UTC)
REFERENCE = "01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f"
TAXPAYER = TaxpayerId("C1234567890")
ACCESS_TOKEN = "eyJhbGciOiJFUzI1NiIsImtpZCI6…"

_DAY = timedelta(days=1)
_NONCE = "MTc5NTMxMjgwMA.2k1Zf0cV3T6mQhXrB8sYwA"
_FACTS = Facts(
    ClientFacts(
        id=1,
        client_id="ci_test_…",
        taxpayer=TAXPAYER,
        taxpayer_is_active=True,
        scopes=("InvoicingAPI",),
        logins_per_minute=DEFAULT_LOGINS_PER_MINUTE,
        blocked_at=None,
        expires_at=None,
        intermediary=None,
    ),
    CredentialFacts(id=1, hint="x7Qa", expires_at=AT + 200 * _DAY, revoked_at=None),
)
# What only one login's own refusal can name.
_PARTICULARS: Mapping[str, Mapping[str, str]] = {
    ProtocolReason.MALFORMED_REQUEST: {"detail": "the parameter scope is sent more than once"},
    ProtocolReason.MISSING_PARAMETER: {"parameter": "client_secret", "detail": NO_CREDENTIALS},
    ProtocolReason.MALFORMED_ON_BEHALF_OF: {"detail": "it is sent under another name"},
    ProtocolReason.MALFORMED_CREDENTIALS: {"parameter": "client_secret", "detail": Fault.CUT_OFF},
    ProtocolReason.INVALID_DPOP_PROOF: {"detail": ProofFault.TOO_OLD},
    RegistryReason.SOURCE_NETWORK_NOT_ALLOWED: {"detail": "203.0.113.7"},
    RegistryReason.INVALID_SCOPE: {"detail": "another scope"},
}
_OF_DPOP = (
    RegistryReason.DPOP_PROOF_MISSING,
    ProtocolReason.INVALID_DPOP_PROOF,
    ProtocolReason.USE_DPOP_NONCE,
)
_CHECKS = list(Check)


def as_text(answer: Answer) -> str:
    """Status line, headers and body."""
    lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    return "\n".join([*lines, "", answer.body.decode()])


@cache
def refused_example(reason: str, auth_url: str) -> Answer:
    """What a login is answered that is refused for this reason, by the service at `auth_url`."""
    client, refusal = _client(reason) if _proved_itself(reason) else None, REFUSALS[reason]
    is_counted = refusal.recorded and not refusal.counts_as_failure
    quota = Quota(DEFAULT_LOGINS_PER_MINUTE, int(is_counted), AT)
    answer = refused_answer(REFERENCE, AT, _refused(reason), client, quota)
    if NONCE_HEADER in answer.headers:  # not one that this service ever makes
        return replace(answer, headers=answer.headers | {NONCE_HEADER: _NONCE})
    return answer


@cache
def issued_example(auth_url: str) -> Answer:
    """What a login is answered that gets a token."""
    body = {
        "access_token": ACCESS_TOKEN,
        "expires_in": int(TOKEN_LIFETIME.total_seconds()),
        "token_type": "Bearer",
        "scope": "InvoicingAPI",
    }
    quota = Quota(DEFAULT_LOGINS_PER_MINUTE, 1, AT)
    text = json.dumps(body, ensure_ascii=False)
    return issued_answer(REFERENCE, AT, text, TAXPAYER, _client(), quota, TOKEN_LIFETIME)


def _refused(reason: str) -> Refused:
    if reason == ProtocolReason.RATE_LIMITED:
        throttle = Throttle(
            AT + timedelta(seconds=42), DEFAULT_LOGINS_PER_MINUTE, _FACTS.credential.expires_at
        )
        return RateLimited(throttle, ThrottleCause.LOGINS)
    is_coming = reason == RegistryReason.PERMISSION_NOT_YET_VALID
    has_date = "{since}" in REFUSALS[reason].text
    since = (AT + _DAY if is_coming else AT - _DAY) if has_date else None
    return Refused(reason, since=since, **_PARTICULARS.get(reason, {}))


def _client(reason: str = "") -> AuthenticatedClient:
    sent = ClientSecretCredentials(Method.CLIENT_SECRET_POST, _FACTS.client.client_id, "")
    if reason not in _OF_DPOP:
        return authenticate(sent, _FACTS)
    bound = replace(_FACTS.client, token_binding=TokenBinding.DPOP)
    return authenticate(sent, replace(_FACTS, client=bound))


def _proved_itself(reason: str) -> bool:
    """Whether the secret had matched when the login was refused."""
    check = REFUSALS[reason].check
    if check is None:
        return reason == ProtocolReason.SERVER_ERROR
    return _CHECKS.index(check) > _CHECKS.index(Check.CREDENTIALS)
