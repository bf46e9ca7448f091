"""`POST /connect/token` (specification 4, contract 1): every step of a login, in order."""

import logging
import time

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import View

from taxpayers.identifiers import Notation
from taxpayers.rules import Refused
from tokens.endpoint.arrival import Arrival, receive
from tokens.endpoint.recording import (
    client_id_as_sent,
    record_issued,
    record_refused,
    record_unreadable,
)
from tokens.endpoint.request import (
    RawTokenRequest,
    TokenRequest,
    UnreadableRequest,
    read_token_request,
    recognize,
)
from tokens.endpoint.response import issued_response, refused_response
from tokens.endpoint.throttle import check_throttle
from tokens.endpoint.toolkit import LoginRequest, TokenIssuer
from tokens.metrics import ISSUED, count_login
from tokens.refusals.table import ProtocolReason

logger = logging.getLogger("tokens.login")

issuer = TokenIssuer()


class TokenView(View):
    """The login. The first "no" of a step ends it; nothing is answered before it is recorded."""

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        started = time.perf_counter()
        arrival, raw = receive(request)
        sent, outcome, response = _login(arrival, raw)
        seconds = time.perf_counter() - started
        count_login(outcome, seconds)
        _log(arrival, sent, outcome, seconds)
        return response


token_view = csrf_exempt(TokenView.as_view())

Answer = tuple[TokenRequest | UnreadableRequest, str, HttpResponse]  # asked by whom, how it ended


def _login(arrival: Arrival, raw: RawTokenRequest) -> Answer:
    notation = Notation(settings.TIN_PATTERN, settings.ROB_PATTERN)
    try:
        asked = read_token_request(raw, notation=notation, environment=settings.ENVIRONMENT)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        return _refuse_unreadable(arrival, recognize(raw, notation), _refusal(arrival, error))
    login = LoginRequest(arrival, asked)
    try:
        check_throttle(arrival, asked)
        issued = issuer.issue(login)  # authenticate the client, decide, sign
        quota = record_issued(arrival, asked, issued.client, issued.token)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        return _refuse(login, _refusal(arrival, error))
    return asked, ISSUED, issued_response(arrival.id, issued.body, issued.client, quota)


def _refuse_unreadable(arrival: Arrival, sent: UnreadableRequest, refused: Refused) -> Answer:
    try:
        record_unreadable(arrival, sent, refused)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        refused = _refusal(arrival, error)
    return sent, refused.reason, refused_response(arrival.id, arrival.at, refused)


def _refuse(login: LoginRequest, refused: Refused) -> Answer:
    arrival, asked, quota = login.arrival, login.asked, None
    try:
        quota = record_refused(arrival, asked, login.client, refused, login.at)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        refused = _refusal(arrival, error)
    response = refused_response(arrival.id, login.at, refused, login.client, quota)
    return asked, refused.reason, response


def _refusal(arrival: Arrival, error: Exception) -> Refused:
    """What the client is told of an error: the refusal itself, or a 503 or 500 without detail."""
    if isinstance(error, Refused):
        return error
    logger.error("login failed", exc_info=error, extra={"reference": str(arrival.id)})
    is_outage = isinstance(error, DatabaseError)
    reason = ProtocolReason.TEMPORARILY_UNAVAILABLE if is_outage else ProtocolReason.SERVER_ERROR
    return Refused(reason)


def _log(
    arrival: Arrival, sent: TokenRequest | UnreadableRequest, outcome: str, seconds: float
) -> None:
    logger.info(
        "login",
        extra={
            "reference": str(arrival.id),
            "outcome": outcome,
            "client_id": client_id_as_sent(sent),
            "source_address": arrival.source_address,
            "milliseconds": round(seconds * 1000, 2),
        },
    )
