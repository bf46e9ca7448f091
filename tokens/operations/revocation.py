"""`POST /connect/revocation`: the client that owns a token ends it for good (RFC 7009)."""

import logging
import re
from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from taxpayers.facts.values import ClientFacts, Reading
from taxpayers.rules import Refused, check_credential
from tokens.access_tokens.claims import index_of_claims
from tokens.access_tokens.verification import AccessToken, InvalidToken
from tokens.answers.response import ERP_SYSTEM, accepted_answer, error_answer, refused_by
from tokens.calls import Call, TokenRevocation
from tokens.client_auth.methods import CheckedCredentials, authenticate, facts_query, use_of
from tokens.client_auth.private_key_jwt import used_before
from tokens.login_settings import login_settings
from tokens.metrics import revocations
from tokens.operations.failures import check_failures, count_failure
from tokens.operations.node import Node
from tokens.operations.steps import EndedRequest, refusal_of, reporter
from tokens.rate_limits.throttle import RateLimited, Throttle, ThrottleCause
from tokens.request.arrival import Arrival
from tokens.request.token_request import RawTokenRequest, read_client_request
from tokens.resource_server.active_token import verified

logger = logging.getLogger("tokens.revocation")

_OPERATION = "revocation"

_NO_PART_OF_A_TOKEN = re.compile(r"[^A-Za-z0-9_.-]")

REVOKED, NOTHING_TO_REVOKE, OTHER_CLIENT = "revoked", "nothing_to_revoke", "other_client"
_OTHER_CLIENT_TEXT = (
    "This token was issued to another client_id, so it stays valid. The developer of the ERP system"
    " must send the client_id and the secret of the client that logged in."
)


report_revocation = reporter(logger, revocations, _OPERATION, "client_id", "login")


def revoke(
    node: Node, arrival: Arrival, raw: RawTokenRequest
) -> Generator[Call, Any, EndedRequest]:
    """The steps of one revocation. They never raise: every client gets an answer.

    It needs a right secret, but no right to log in: a blocked client can end its own tokens.
    """
    at, client_id, own = arrival.at, "", login_settings()
    try:
        credentials, sent = read_client_request(
            raw, "token", environment=own.environment, issuer=own.issuer
        )
        client_id = credentials.client_id
        check_failures(node, arrival, credentials, _OPERATION)
        reading: Reading = yield facts_query(credentials, None)
        at = reading.at
        yield from _authenticate(node, arrival, credentials, reading)
        token = _verified(sent, at)
        if token is None:  # it ends nothing, and that is no error (RFC 7009 section 2.2)
            return EndedRequest(
                NOTHING_TO_REVOKE, accepted_answer(arrival.reference, ""), client_id
            )
        if token.client_id != client_id:
            answer = error_answer(arrival.reference, 400, "invalid_grant", _OTHER_CLIENT_TEXT)
            return EndedRequest(OTHER_CLIENT, answer, client_id, token.jti)
        yield TokenRevocation(UUID(token.jti), token.expires_at, index_of_claims(token.claims))
        return EndedRequest(REVOKED, accepted_answer(arrival.reference, ""), client_id, token.jti)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        refused = refusal_of(arrival, error, "revocation failed")
        answer = refused_by(arrival.reference, at, refused, ERP_SYSTEM)
        return EndedRequest(refused.reason, answer, client_id)


def _authenticate(
    node: Node, arrival: Arrival, credentials: CheckedCredentials, reading: Reading
) -> Generator[Call, Any, None]:
    try:
        client = authenticate(credentials, reading.facts, reading.at)
        check_credential(client.credential, reading.at)
        use = use_of(credentials)
        if use is not None:
            _check_limit(node, client.client, reading.at)
            if not (yield use):
                raise used_before()
    except Refused as refused:
        yield from count_failure(node, arrival, credentials, _OPERATION, refused)
        raise


def _check_limit(node: Node, client: ClientFacts, at: datetime) -> None:
    """Each use of an assertion is a row: a client ends no more tokens than it may get."""
    if not (limit := client.logins_per_minute):
        return
    wait = node.revocations.seconds_to_wait(
        client.id, at.timestamp(), burst=limit, seconds=60 / limit
    )
    if wait:
        throttle = Throttle(at + timedelta(seconds=wait), limit)
        raise RateLimited(throttle, ThrottleCause.REVOCATIONS)


def _verified(token: str, at: datetime) -> AccessToken | None:
    """The token, if it could still be accepted anywhere; what could not be needs no end.

    200 says that it has ended. So what came with it (a line break of a file, quotes, the word
    Bearer) is left out: the longest piece of the text that can be a token is the token.
    """
    try:
        return verified(max(_NO_PART_OF_A_TOKEN.split(token), key=len), at)
    except InvalidToken:
        return None
