"""`POST /sandbox/reset`: a client of the sandbox resets its own counter (only in test)."""

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from taxpayers.credentials import hash_secret, is_same_secret
from taxpayers.rules import Refused
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName, sandbox_name
from taxpayers.services.sandbox.clients import reset_sandbox_counter
from tokens.client_auth.client_secret import read_credentials
from tokens.http import error_response

RESET_PATH = "/sandbox/reset"
NO_CLIENT = (
    "This is not the client_id and client_secret of a client of the sandbox: copy both from"
    " /sandbox. Only their counters can be reset."
)

UNAVAILABLE = "The counter cannot be reset right now; try again."
_RETRY_SECONDS = 5


@csrf_exempt
def reset(request: HttpRequest) -> HttpResponse:
    """200 once the counter is reset; 400 if it is no client of the sandbox; 503 without a database.

    No session.
    """
    if request.method != "POST":
        response = error_response(405, "invalid_request", "This address takes POST only.")
        response["Allow"] = "POST"
        return response
    name = _client_of(request)
    if name is None:
        return error_response(400, "invalid_client", NO_CLIENT)
    try:
        reset_sandbox_counter(name=name)
    except DatabaseError:
        response = error_response(503, "temporarily_unavailable", UNAVAILABLE)
        response["Retry-After"] = str(_RETRY_SECONDS)
        return response
    return JsonResponse(
        {"client_id": CREDENTIALS[name].client_id, "name": str(name), "logins": 0},
        headers={"Cache-Control": "no-store"},
    )


def _client_of(request: HttpRequest) -> SandboxName | None:
    """Only by the public list: no query, so guesses cost nothing and tell nothing."""
    try:
        sent = read_credentials(request.POST.dict(), request.META.get("HTTP_AUTHORIZATION", ""))
    except Refused:
        return None
    name = sandbox_name(sent.client_id)
    if name is None:
        return None
    expected = hash_secret(CREDENTIALS[name].client_secret)
    return name if is_same_secret(sent.lookup, expected) else None
