"""Who calls, for the REST framework: by an access token, or by a key that no client has yet."""

from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils.encoding import escape_uri_path
from rest_framework import status
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException, ParseError
from rest_framework.request import Request

from taxpayers.services.login_method.registration import validate_keys
from taxpayers.shut_down import answered_within
from taxpayers.validation import ServiceError
from tokens.access_tokens.verification import AccessToken
from tokens.dpop.proof import InvalidProof, Proof, verified_thumbprint
from tokens.request.arrival import called_url, reported_certificate
from tokens.resource_server import active_token
from tokens.resource_server.possession import ApiRequest, proof_of, use_once
from tokens.store.django_store import perform_all

ANSWER_SECONDS = 1.5  # so that a database that hangs is a 503 within 2 seconds


class Challenge(APIException):
    """401 with its challenge; `error` is its code."""

    status_code = status.HTTP_401_UNAUTHORIZED

    def __init__(self, fault: active_token.Unauthorized) -> None:
        super().__init__(str(fault))
        self.error, self.auth_header = fault.error, fault.challenge


class ActiveTokenAuthentication(BaseAuthentication):
    """An `ActiveToken` as `request.user`, its `AccessToken` as `request.auth`."""

    def authenticate(self, request: Request) -> tuple[active_token.ActiveToken, AccessToken]:
        """Raises Challenge, or django.db.DatabaseError."""
        sent = api_request(request, self.called_url(request))
        try:
            with answered_within(ANSWER_SECONDS):
                caller = perform_all(active_token.authenticate(sent, datetime.now(UTC)))
        except active_token.Unauthorized as fault:
            raise Challenge(fault) from None
        return caller, caller.token

    def called_url(self, request: Request) -> str:
        """The base address at which this API is called."""
        return called_url(reported_certificate(request.META))


def api_request(request: Request, called: str) -> ApiRequest:
    """What was sent, to this base address."""
    return ApiRequest(
        method=request.method or "",
        address=f"{called}{escape_uri_path(request.path)}",
        authorization=request.META.get("HTTP_AUTHORIZATION", ""),
        dpop=request.META.get("HTTP_DPOP"),
        certificate=reported_certificate(request.META),
    )


_USE = "a key without a client"  # no client_id is like it
_NO_PROOF = (
    "Send the header DPoP: a proof (RFC 9449 section 4) that is signed with the private key, with"
    " the public key in its header."
)


@dataclass(frozen=True, slots=True)
class ProvedKey:
    """A key whose owner sent this very request; `jwk` as sent, in JSON."""

    jwk: str
    thumbprint: str
    proof: Proof

    def use_once(self) -> None:
        """Raises Challenge if the proof was used before."""
        try:
            perform_all(use_once(self.proof, _USE, self.thumbprint))
        except InvalidProof as invalid:
            raise Challenge(active_token.invalid_proof(invalid.fault)) from None


class KeyAuthentication(BaseAuthentication):
    """A `ProvedKey` as `request.auth`; there is no user. The proof is not used up yet."""

    def authenticate(self, request: Request) -> tuple[None, ProvedKey]:
        """Raises Challenge, or ParseError for a key with which no client could log in."""
        sent = api_request(request, called_url(reported_certificate(request.META)))
        if sent.dpop is None:
            raise Challenge(active_token.dpop_challenge(_NO_PROOF))
        try:
            proof = proof_of(sent, datetime.now(UTC))
            jwk = proof.jwk.decode(errors="replace")
            validate_keys(jwk)
            return None, ProvedKey(jwk, verified_thumbprint(proof), proof)
        except ServiceError as fault:
            raise ParseError(str(fault)) from None
        except InvalidProof as invalid:
            raise Challenge(active_token.invalid_proof(invalid.fault)) from None
