"""`POST /connect/token` (specification 4, contract 1): one way in, one exit for every answer."""

import logging
import time
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import View
from oauth2_provider.views.mixins import OAuthLibMixin
from uuid_utils.compat import uuid7

from taxpayers.credentials import hash_secret
from taxpayers.identifiers import Notation
from taxpayers.rules import Reason, Refusal, Refused
from tokens.endpoint.login import Login
from tokens.endpoint.proxies import BODY_FAULT, TrustedProxies
from tokens.endpoint.recording import TooMany, check_remembered, client_id_as_sent, record
from tokens.endpoint.request import MAX_BODY_BYTES, RawTokenRequest, read_token_request
from tokens.endpoint.response import issued, refused
from tokens.endpoint.toolkit import ClientCredentialsServer, LoginBackend
from tokens.endpoint.validator import LoginValidator
from tokens.metrics import ISSUED, count_login
from tokens.rate_limits.limits import Throttle

logger = logging.getLogger("tokens.endpoint.login")


class TokenView(OAuthLibMixin, View):
    """The login. What can be refused without asking the registry is refused first, in order."""

    # The toolkit has no types and says None here, for "as the settings say".
    server_class = ClientCredentialsServer  # type: ignore[assignment]
    validator_class = LoginValidator  # type: ignore[assignment]
    oauthlib_backend_class = LoginBackend  # type: ignore[assignment]

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        started = time.perf_counter()
        login = _begin(request)
        body, denial = "", None
        try:
            body = self._decided(request, login)
            record(login)
        except TooMany as too_many:
            login.refusal, denial = too_many.refusal, too_many.denial
        except DatabaseError:
            logger.exception("out of reach", extra={"reference": str(login.id)})
            login.refusal = Refusal(Reason.TEMPORARILY_UNAVAILABLE)
        except Exception:
            logger.exception("login failed", extra={"reference": str(login.id)})
            login.refusal = Refusal(Reason.SERVER_ERROR)
            _record_if_possible(login)
        return self._answer(login, body, denial, time.perf_counter() - started)

    def _decided(self, request: HttpRequest, login: Login) -> str:
        """The body with the token, or an empty one once `login.refusal` says why there is none."""
        try:
            _check_transport(request)
            _read(request, login)
            check_remembered(login)
            body: str
            _uri, _headers, body, status = self.create_token_response(login)
        except TooMany:
            raise
        except Refused as refused_:
            login.refusal = refused_.refusal
            return ""
        if status != HTTPStatus.OK:
            raise RuntimeError(f"oauthlib refused what was checked before: {body}")
        return body

    @staticmethod
    def _answer(login: Login, body: str, denial: Throttle | None, seconds: float) -> HttpResponse:
        refusal = login.refusal
        outcome = refusal.reason if refusal else ISSUED
        count_login(outcome, seconds)
        logger.info(
            "login",
            extra={
                "reference": str(login.id),
                "outcome": outcome,
                "client_id": client_id_as_sent(login),
                "source_address": login.source_address,
                "milliseconds": round(seconds * 1000, 2),
            },
        )
        return issued(login, body) if refusal is None else refused(login, refusal, denial)


token_view = csrf_exempt(TokenView.as_view())


def _begin(request: HttpRequest) -> Login:
    return Login(
        id=uuid7(),
        at=datetime.now(UTC),
        source_address=_proxies().source_address(request.META),
        user_agent=request.META.get("HTTP_USER_AGENT", ""),
    )


def _check_transport(request: HttpRequest) -> None:
    if request.method != "POST":
        raise Refused(Refusal(Reason.METHOD_NOT_ALLOWED))
    if settings.AUTH_URL.startswith("https:") and not _proxies().is_secure(
        request.META, request.META.get("wsgi.url_scheme", "http")
    ):
        raise Refused(Refusal(Reason.INSECURE_TRANSPORT))


def _read(request: HttpRequest, login: Login) -> None:
    meta = request.META
    if fault := meta.get(BODY_FAULT):
        raise Refused(Refusal(Reason.MALFORMED_REQUEST, detail=f"the body cannot be read: {fault}"))
    raw = RawTokenRequest(
        body=request.read(MAX_BODY_BYTES + 1),
        content_type=meta.get("CONTENT_TYPE", ""),
        query_string=meta.get("QUERY_STRING", ""),
        authorization=meta.get("HTTP_AUTHORIZATION"),
        on_behalf_of=meta.get("HTTP_ONBEHALFOF"),
    )
    read_token_request(
        raw,
        login.attempt,
        notation=Notation(settings.TIN_PATTERN, settings.ROB_PATTERN),
        environment=settings.ENVIRONMENT,
    )
    login.hashed_secret = hash_secret(login.attempt.client_secret)


def _record_if_possible(login: Login) -> None:
    try:
        record(login)
    except Exception:
        logger.exception("no record of a failed login", extra={"reference": str(login.id)})


def _proxies() -> TrustedProxies:
    return _trusted(tuple(settings.TRUSTED_PROXIES))


_trusted = lru_cache(maxsize=4)(TrustedProxies)
