"""`POST /connect/introspect`: is this token active? (contract 2, RFC 7662, RFC 9701)."""

import logging
from collections.abc import Generator
from datetime import datetime
from typing import Any

from django.db import DatabaseError

from taxpayers.rules import Refused, check_credential
from tokens.access_tokens.claims import token_type
from tokens.access_tokens.status import ACTIVE, InactiveReason, status_of
from tokens.access_tokens.verification import AccessToken, InvalidToken
from tokens.answers import response
from tokens.answers.accept import choose_media_type
from tokens.calls import ApiSecretUse, Call
from tokens.client_auth.client_secret import ClientSecretCredentials
from tokens.keys.signer import current_key_ring, sign
from tokens.login_settings import login_settings
from tokens.metrics import INACTIVE, introspections
from tokens.operations.failures import check_failures, count_failure
from tokens.operations.node import Node
from tokens.operations.steps import EndedRequest, refusal_of, reporter
from tokens.refusals.table import ProtocolReason
from tokens.request.arrival import Arrival
from tokens.request.token_request import RawTokenRequest, read_api_request
from tokens.resource_server.active_token import verified
from tokens.status_lists.offline_blocks import token_with_offline_block
from tokens.store.token_query import ApiFacts, TokenReading, token_query

logger = logging.getLogger("tokens.introspection")

_OPERATION = "introspection"

NOT_ACCEPTABLE = "not_acceptable"
JSON, SIGNED = "application/json", "application/token-introspection+jwt"
_MEDIA_TYPES = (JSON, SIGNED)
_TYP = SIGNED.removeprefix("application/")
_NOT_ACCEPTABLE_TEXT = (
    f"Accept allows neither {JSON} nor {SIGNED}. The developer of the protected API must correct"
    " the request."
)


report_introspection = reporter(logger, introspections, _OPERATION, "client_id", "login", "status")


def introspect(
    node: Node, arrival: Arrival, raw: RawTokenRequest
) -> Generator[Call, Any, EndedRequest]:
    """The steps of one introspection. They never raise: every caller gets an answer."""
    at, client_id = arrival.at, ""
    try:
        credentials, token = read_api_request(
            raw, "token", environment=login_settings().environment
        )
        client_id = credentials.client_id
        check_failures(node, arrival, credentials, _OPERATION)
        reading: TokenReading = yield token_query(token, client_id, credentials.lookup)
        at = reading.at
        api = yield from _authenticate(node, arrival, credentials, reading)
        yield from _note_use(node, arrival, api, at)
        media_type = choose_media_type(raw.accept, _MEDIA_TYPES)
        if media_type is None:
            answer = response.error_answer(
                arrival.reference, 406, "invalid_request", _NOT_ACCEPTABLE_TEXT
            )
            return EndedRequest(NOT_ACCEPTABLE, answer, client_id)
        status, found = _status(token, reading, api)
        answer = _answer(arrival, found if status == ACTIVE else None, api, media_type, at)
        outcome = ACTIVE if status == ACTIVE else INACTIVE
        return EndedRequest(outcome, answer, client_id, found.jti if found else "", status)
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets an answer
        refused = refusal_of(arrival, error, "introspection failed")
        answer = response.refused_by(arrival.reference, at, refused, response.PROTECTED_API)
        return EndedRequest(refused.reason, answer, client_id)


def _authenticate(
    node: Node, arrival: Arrival, credentials: ClientSecretCredentials, reading: TokenReading
) -> Generator[Call, Any, ApiFacts]:
    """The API that asks. Raises Refused; a system user is no API, and a deactivated one neither."""
    try:
        if reading.caller is None or not reading.caller.is_active:
            raise Refused(ProtocolReason.INVALID_CREDENTIALS)
        check_credential(reading.caller.secret, reading.at)
    except Refused as refused:
        yield from count_failure(node, arrival, credentials, _OPERATION, refused)
        raise
    return reading.caller


def _note_use(
    node: Node, arrival: Arrival, api: ApiFacts, at: datetime
) -> Generator[Call, Any, None]:
    """Stores the use of its secret, for staff; the answer does not depend on it."""
    if not node.api_secret_uses.is_first(api.secret.id, at):
        return
    try:
        yield ApiSecretUse(api.secret.id)
    except DatabaseError:
        logger.warning("use of a secret not stored", extra={"reference": arrival.reference})


def _status(token: str, reading: TokenReading, api: ApiFacts) -> tuple[str, AccessToken | None]:
    try:
        found = verified(token, reading.at, api.audience)
    except InvalidToken:
        return InactiveReason.NOT_VALID, None
    facts = token_with_offline_block(reading.token)
    status = status_of(found, facts, known_scopes=login_settings().scopes, at=reading.at)
    return status, found


def _answer(
    arrival: Arrival, token: AccessToken | None, api: ApiFacts, media_type: str, at: datetime
) -> response.Answer:
    """`token` is an active one; None: it is not, and nothing more is revealed."""
    members: dict[str, Any] = {"active": token is not None}
    if token is not None:
        members |= {"token_type": token_type(token.confirmation), **token.claims}
    if media_type == JSON:
        return response.accepted_answer(arrival.reference, response.json_text(members))
    signed = {
        "iss": login_settings().issuer,
        "aud": api.client_id,
        "iat": int(at.timestamp()),
        "token_introspection": members,
    }
    key = current_key_ring(at).signer(at)
    return response.accepted_answer(arrival.reference, sign(signed, key, _TYP), SIGNED)
