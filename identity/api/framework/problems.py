"""Errors of the management API as problem details (RFC 9457): one table, one exception."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from identity.management_api import BASE_PATH, base_url
from taxpayers.redaction import hide_marked_secrets

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class ProblemKind:
    status: int
    title: str
    advice: str  # what the caller does next


PROBLEMS: Mapping[str, ProblemKind] = {
    "malformed_request": ProblemKind(
        400,
        "The request cannot be read",
        "Correct the request: the detail names its fault. Nothing was changed.",
    ),
    "insecure_transport": ProblemKind(
        400,
        "The request came without HTTPS",
        "Call the https address, and log in again: the token may have been read on the way.",
    ),
    "invalid_token": ProblemKind(
        401,
        "No token, or none that is accepted",
        "Log in at the token endpoint with a scope of the management API, and send the new token.",
    ),
    "insufficient_scope": ProblemKind(
        403,
        "The token does not open this address",
        "Log in with the scope that the detail names. If the login does not grant it, the"
        " operators give it to the system user.",
    ),
    "managed_by_operators": ProblemKind(
        403,
        "Only operators change this",
        "System users that may use the management API, and its scopes, are managed by commands of"
        " the operators only, so that a stolen token cannot make itself new credentials.",
    ),
    "not_found": ProblemKind(
        404, "There is no such record or address", "Check the identifier and the path."
    ),
    "method_not_allowed": ProblemKind(
        405, "This address does not take the method", "Use one of those in the header Allow."
    ),
    "request_in_progress": ProblemKind(
        409,
        "The first request with this Idempotency-Key is not finished",
        "Wait a second and repeat the request with the same key.",
    ),
    "changed_meanwhile": ProblemKind(
        412,
        "The record has changed since it was read",
        "Read it again, decide again, and send the new ETag in If-Match. Nothing was changed.",
    ),
    "content_too_large": ProblemKind(
        413,
        "The body is too large",
        "Send less: a body has at most 65536 bytes, that of an import 524288.",
    ),
    "unsupported_media_type": ProblemKind(
        415, "The body is not JSON", "Send JSON with the header Content-Type: application/json."
    ),
    "invalid_fields": ProblemKind(
        422,
        "Fields of the request are wrong",
        "Correct the fields that are listed in errors. Nothing was changed.",
    ),
    "change_refused": ProblemKind(
        422,
        "The change is not possible",
        "The detail says why and what to do. Nothing was changed.",
    ),
    "key_used_before": ProblemKind(
        422,
        "The Idempotency-Key was used for another request",
        "Use a new key for each new request, and the same key only to repeat one.",
    ),
    "precondition_required": ProblemKind(
        428,
        "If-Match is missing",
        "Read the record, and send its ETag in If-Match; or * to change it whatever it is now.",
    ),
    "server_error": ProblemKind(
        500, "Something went wrong on our side", "Report the correlationId to the operators."
    ),
    "temporarily_unavailable": ProblemKind(
        503,
        "The service cannot answer right now",
        "Repeat the request after the time in Retry-After, with the same Idempotency-Key.",
    ),
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault: of a field, by its JSON pointer (RFC 6901), or of a query parameter."""

    detail: str
    code: str
    pointer: str = ""
    parameter: str = ""

    def as_json(self) -> dict[str, str]:
        place = {"pointer": self.pointer} if self.pointer else {"parameter": self.parameter}
        return {**place, "code": self.code, "detail": hide_marked_secrets(self.detail)}


@dataclass(eq=False)  # not frozen: Python itself sets the traceback of an exception
class Problem(Exception):
    """A request that is not done; `kind` is a name of PROBLEMS. Without a detail: its advice."""

    kind: str
    detail: str = ""
    errors: Sequence[FieldError] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str = ""  # the code of RFC 6750 or RFC 9449, if it is not the kind


def problem_type(kind: str) -> str:
    """The URI of a kind of problem: a public page."""
    return f"{base_url()}/{BASE_PATH}/problems/{kind}"


def problem_body(problem: Problem, reference: str) -> dict[str, Any]:
    """The JSON of a problem; `reference` is the correlation id of the answer."""
    kind = PROBLEMS[problem.kind]
    detail = hide_marked_secrets(problem.detail or kind.advice)
    body: dict[str, Any] = {
        "type": problem_type(problem.kind),
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "instance": f"urn:uuid:{reference}",
        "correlationId": reference,
    }
    if problem.errors:
        body["errors"] = [error.as_json() for error in problem.errors]
    if kind.status in (401, 403):  # as every protected API of the service answers these
        body |= {"error": problem.error or problem.kind, "error_description": detail}
    return body
