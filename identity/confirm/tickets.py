"""A portal ticket: a JWT by which a portal of the authority says who stands before its page.

Signed with a key that is registered for the portal's system user (private_key_jwt), for this
service only, at most five minutes valid, and used once.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from django.conf import settings

from identity.confirm.refusals import ConfirmRefused
from identity.sandbox import portal as sandbox
from taxpayers.client_keys import ALGORITHMS, PublicKey, algorithm_of, key_name, load_key
from taxpayers.duties import Duty, duties_of
from taxpayers.identifiers import MalformedIdentifier, TaxpayerId
from taxpayers.models import Credential
from taxpayers.standing.loaded_rows import standing_of_row
from taxpayers.validation import taxpayer_notation
from tokens.calls import ProofUse
from tokens.client_auth import compact_jws
from tokens.client_auth.compact_jws import Header
from tokens.store import django_store as store

LIFETIME, SKEW = timedelta(minutes=5), timedelta(seconds=10)
TYPE = "portal-ticket+jwt"  # no other JWT that the portal signs with this key (RFC 8725 3.11)
DECIDING = frozenset({Duty.GRANT, Duty.ISSUE})  # permissions, connections
MAX_LENGTH, MAX_TEXT = 4096, 128


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket that was accepted. What it says of the person is named as in Evidence."""

    portal: str  # its client_id
    duties: frozenset[Duty]  # of the portal
    approved_by: str
    taxpayer: TaxpayerId
    capacity: str
    sign_in_method: str
    sign_in_level: str
    request: str


class _Claims(msgspec.Struct):
    iss: str = ""
    aud: str | list[str] = ""
    exp: float = 0
    iat: float = 0
    jti: str = ""
    sub: str = ""
    taxpayer: str = ""
    capacity: str = ""
    amr: str | list[str] = ""
    acr: str = ""
    request: str = ""


def take_ticket(text: str, at: datetime) -> Ticket:
    """The ticket, which opens nothing a second time. Raises ConfirmRefused."""
    header, claims, signed, signature = _parts(text)
    if sandbox.may_decide(claims.iss, claims.taxpayer):
        duties, key = DECIDING, sandbox.PUBLIC_KEY
    else:
        duties, key = _registered(claims.iss, header, at)
    if not compact_jws.is_signature(key, signature, signed):
        raise ConfirmRefused("not_a_portal")
    if claims.aud not in (settings.CONFIRM_URL, [settings.CONFIRM_URL]):
        raise ConfirmRefused("other_audience")
    last_moment = _last_moment(claims, at)
    if not claims.sub:
        raise ConfirmRefused("no_person")
    ticket = _ticket(claims, duties)
    use = f"portal ticket\n{claims.iss}\n{claims.jti}".encode()
    id_ = UUID(bytes=hashlib.blake2b(use, digest_size=16).digest())
    if not store.perform(ProofUse(id_, last_moment)):
        raise ConfirmRefused("replayed_ticket")
    return ticket


def _parts(text: str) -> tuple[Header, _Claims, bytes, bytes]:
    try:
        header_part, claims_part, signature_part = compact_jws.parts_of(text[: MAX_LENGTH + 1])
        header = compact_jws.read_json(header_part, Header)
        claims = compact_jws.read_json(claims_part, _Claims)
        signature = compact_jws.read_bytes(signature_part)
    except compact_jws.UnreadableJws:
        raise ConfirmRefused("malformed_ticket") from None
    is_ours = header.typ.lower().removeprefix("application/") == TYPE and header.crit is None
    if len(text) > MAX_LENGTH or not is_ours or not 0 < len(claims.jti) <= MAX_TEXT:
        raise ConfirmRefused("malformed_ticket")
    return header, claims, f"{header_part}.{claims_part}".encode(), signature


def _registered(portal: str, header: Header, at: datetime) -> tuple[frozenset[Duty], PublicKey]:
    """A live key of a system user that may decide, and would get a token for it now."""
    rows = Credential.objects.select_related("system_user__taxpayer").exclude(public_jwk="")
    named = rows.filter(system_user__client_id=portal, lookup=key_name(header.kid))
    key = None if "\0" in portal + header.kid else named.first()
    if key is None or not key.is_live(at) or not key.fits(key.system_user):
        raise ConfirmRefused("not_a_portal")
    duties = duties_of(key.system_user.scopes.split())
    if duties.isdisjoint(DECIDING) or not standing_of_row(key.system_user, at).gets_token:
        raise ConfirmRefused("not_a_portal")
    kind = msgspec.json.decode(key.public_jwk, type=dict[str, Any])["kty"]
    if ALGORITHMS.get(kind) != algorithm_of(header.alg):
        raise ConfirmRefused("not_a_portal")
    return duties, load_key(key.public_jwk)


def _last_moment(claims: _Claims, at: datetime) -> datetime:
    """The last moment at which it is accepted. Raises ConfirmRefused if that is not now."""
    now, skew, longest = at.timestamp(), SKEW.total_seconds(), LIFETIME.total_seconds()
    if claims.exp + skew < now or claims.iat + longest + skew < now:
        raise ConfirmRefused("expired_ticket")
    if claims.exp - claims.iat > longest or claims.iat > now + skew:
        raise ConfirmRefused("long_ticket")
    return datetime.fromtimestamp(claims.exp, UTC) + SKEW


def _ticket(claims: _Claims, duties: frozenset[Duty]) -> Ticket:
    method = claims.amr if isinstance(claims.amr, str) else " ".join(claims.amr)
    texts = (claims.sub, claims.capacity, method, claims.acr)
    if not all(0 < len(text) <= MAX_TEXT and text.isprintable() for text in texts):
        raise ConfirmRefused("incomplete_ticket")
    try:
        taxpayer = taxpayer_notation().parse(claims.taxpayer)
    except MalformedIdentifier:
        raise ConfirmRefused("incomplete_ticket") from None
    return Ticket(claims.iss, duties, claims.sub, taxpayer, *texts[1:], claims.request)
