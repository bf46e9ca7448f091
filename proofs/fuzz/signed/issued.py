"""What must hold for each token that is issued, and for each one that an API accepts.

The client that gets one has sent what it logs in with; an assertion or a proof counts once.
"""

from collections.abc import Iterator
from typing import Any

from proofs.fuzz.corpus import FuzzInput
from proofs.fuzz.planted import LOGIN_PATH, Planted, hash_of, readings
from proofs.fuzz.signed.signer import OTHER, RIGHT, Signer, members_of

Binding = dict[str, Any]  # the claim `cnf`
_TOKEN_TYPES = {True: "DPoP", False: "Bearer"}
_MALLEABLE = -1  # the last character of a signature has bits that mean nothing
# A proof can be used for a minute, and is stored for another one: after that, one with the same
# `jti` is a new one.
_STORED_SECONDS = 110


def faults_of_token(sent: FuzzInput, body: dict[str, Any], planted: Planted) -> Iterator[str]:
    """Each invariant that this answer with a token breaks."""
    claims = members_of(str(body["access_token"]).rpartition(".")[0].rpartition(".")[2].encode())
    bound_to = claims.get("cnf", {})
    if body.get("token_type") != _TOKEN_TYPES["jkt" in bound_to]:
        yield f"a token of the type {body.get('token_type')} bound to {sorted(bound_to)}"
    check = {
        planted.client_id: _faults_of_secret,
        planted.key_client_id: _faults_of_assertion,
        planted.bound_client_id: _faults_of_bound,
        planted.tls_client_id: _faults_of_certificate,
    }.get(str(claims.get("client_id")).encode(), _unknown_client)
    yield from check(sent, bound_to, planted)


def _unknown_client(sent: FuzzInput, bound_to: Binding, planted: Planted) -> Iterator[str]:
    yield "a token of nobody"


def _faults_of_secret(sent: FuzzInput, bound_to: Binding, planted: Planted) -> Iterator[str]:
    if not planted.has_right_secret(sent.data):
        yield "a token without the right secret"


def _faults_of_assertion(sent: FuzzInput, bound_to: Binding, planted: Planted) -> Iterator[str]:
    if not _is_new(_assertions(sent, planted), planted):
        yield "a token without a right assertion, or for one that was used before"


def _faults_of_certificate(sent: FuzzInput, bound_to: Binding, planted: Planted) -> Iterator[str]:
    if sent.is_outside or b"SUCCESS" not in sent.data or "x5t#S256" not in bound_to:
        yield "a token for a certificate that no trusted proxy has verified"


def _faults_of_bound(sent: FuzzInput, bound_to: Binding, planted: Planted) -> Iterator[str]:
    if not any(planted.bound_secret in reading for reading in readings(sent.data)):
        yield "a bound token without the right secret"
    if not _is_new(_proofs(sent, str(bound_to.get("jkt"))), planted):
        yield "a bound token without a right proof, or for one that was used before"


def faults_of_accepted(sent: FuzzInput, planted: Planted) -> Iterator[str]:
    """Each invariant that a 200 of a protected API breaks."""
    if planted.access_token[:_MALLEABLE] in sent.data:
        return
    if planted.bound_token[:_MALLEABLE] not in sent.data:
        yield "an API has accepted what is no right token"
        return
    proofs = {
        jti
        for jti, claims in _signed(RIGHT, sent)
        if claims.get("ath") == hash_of(planted.bound_token) and claims.get("htm") == "GET"
    }
    if not _is_new(proofs, planted):
        yield "an API has accepted a bound token without a right proof, or with a used one"


def _assertions(sent: FuzzInput, planted: Planted) -> set[str]:
    return {
        jti
        for jti, claims in _signed(RIGHT, sent)
        if claims.get("aud") in (planted.issuer, [planted.issuer]) and "htm" not in claims
    }


def _proofs(sent: FuzzInput, thumbprint: str) -> set[str]:
    """Those for a login, whose key has this thumbprint."""
    return {
        jti
        for signer in (RIGHT, OTHER)
        if signer.thumbprint == thumbprint
        for jti, claims in _signed(signer, sent)
        if claims.get("htm") == "POST" and str(claims.get("htu")).endswith(LOGIN_PATH)
    }


def _signed(signer: Signer, sent: FuzzInput) -> Iterator[tuple[str, dict[str, Any]]]:
    for reading in readings(sent.data):
        for _, claims in signer.found_in(reading):
            # The same `jti` of an assertion, of a proof or of another key is another one.
            kind = claims.get("ath", claims.get("htm", "assertion"))
            yield f"{kind} {signer.thumbprint} {claims.get('jti')}", claims


def _is_new(found: set[str], planted: Planted) -> bool:
    """Whether one of them was not used before; which of several was used now is unknown."""
    spent, now = planted.learned.spent, planted.clock()
    new = {jti for jti in found if jti not in spent or now - spent[jti] > _STORED_SECONDS}
    if len(new) == 1:
        spent |= dict.fromkeys(new, now)
    return bool(new)
