"""No change is done twice, and none overwrites an unseen one: `Idempotency-Key`, `If-Match`.

As in draft-ietf-httpapi-idempotency-key-header. The answer is stored in the transaction of the
change, for a day, for each client. A request that was refused has changed nothing and is not
stored: it is tried again.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from rest_framework.request import Request
from rest_framework.response import Response

from identity.api.framework.problems import PROBLEMS, Problem
from identity.api.models import StoredAnswer

STORED_FOR = timedelta(hours=24)
REPLAYED = {"Idempotent-Replayed": "true"}
_KEY = re.compile(r'(?:"([\x20\x21\x23-\x5b\x5d-\x7e]{1,255})"|([A-Za-z0-9._~:+/=-]{1,255}))')
_MOST_DELETED = 100  # old answers that one request deletes: more than it adds


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with a key: whose it is, the hash of its key, and of what it asks for."""

    client_id: str
    key: str
    request: str


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to a change: what is shown now, and what a repeated request is answered with."""

    shown: Any
    stored: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def answer_once(request: Request, client_id: str, at: datetime, do: Callable[[], Done]) -> Response:
    """The answer that this request got before, or does it and stores the answer; atomic.

    Only POST takes a key.
    """
    asked = idempotent_request(request, client_id) if request.method == "POST" else None
    with transaction.atomic():
        if asked is not None and (before := answer_before(asked, at)):
            headers = {**before.headers, **REPLAYED}
            return Response(before.body or None, status=before.status, headers=headers)
        done = do()
        if asked is not None:
            headers = dict(done.headers)
            store_answer(asked, status=done.status, headers=headers, body=done.stored, at=at)
    return Response(done.shown, status=done.status, headers=dict(done.headers))


def idempotent_request(request: Request, client_id: str) -> IdempotentRequest | None:
    """The request, None if it has no key. Raises Problem for a header that is no key."""
    if (header := request.headers.get("Idempotency-Key")) is None:
        return None
    match = _KEY.fullmatch(header.strip())
    if match is None:
        raise Problem(
            "malformed_request",
            "Idempotency-Key must be one text of 1 to 255 characters in double quotes, for example"
            ' a UUID: "8e03978e-40d5-43e8-bc93-6894a57f9324".',
        )
    parts = [request.method, request.path, request.data]
    asked = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return IdempotentRequest(client_id, _hash(match[1] or match[2]), _hash(asked))


def answer_before(request: IdempotentRequest, at: datetime) -> StoredAnswer | None:
    """The answer that this request got before. Only inside the transaction of the change.

    Raises Problem if the key was used for another request, or if the first one is under way.
    """
    _lock(request)
    row = StoredAnswer.objects.filter(
        client_id=request.client_id, key=request.key, stored_at__gt=at - STORED_FOR
    ).first()
    if row is not None and row.request != request.request:
        raise Problem("key_used_before", PROBLEMS["key_used_before"].advice)
    return row


def store_answer(
    request: IdempotentRequest, *, status: int, headers: dict[str, str], body: Any, at: datetime
) -> None:
    """Store what a repeated request is answered with, and delete some answers that are too old."""
    StoredAnswer.objects.update_or_create(
        client_id=request.client_id,
        key=request.key,
        defaults={
            "request": request.request,
            "status": status,
            "headers": headers,
            "body": body,
            "stored_at": at,
        },
    )
    old = StoredAnswer.objects.filter(stored_at__lte=at - STORED_FOR).order_by("stored_at")
    # Skip what another transaction is deleting: neither waits for the other.
    found = old.select_for_update(skip_locked=True).values_list("pk", flat=True)
    StoredAnswer.objects.filter(pk__in=list(found[:_MOST_DELETED])).delete()


def _lock(request: IdempotentRequest) -> None:
    """Until the transaction ends. On SQLite it has the only lock there is, so others wait."""
    if connection.vendor != "postgresql":
        return
    number = int(_hash(f"{request.client_id} {request.key}")[:16], 16) - 2**63
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        [(is_locked,)] = cursor.fetchall()
    if not is_locked:
        raise Problem(
            "request_in_progress",
            PROBLEMS["request_in_progress"].advice,
            headers={"Retry-After": "1"},
        )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_TAG = re.compile(r'(W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_LIST = re.compile(rf"\s*{_TAG.pattern}(?:\s*,\s*{_TAG.pattern})*\s*")


def etag_of(representation: Mapping[str, Any]) -> str:
    """A strong entity-tag: the same only for the same record in the same state."""
    text = json.dumps(representation, sort_keys=True, separators=(",", ":"))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def require_match(if_match: str, etag: str) -> None:
    """Raises Problem unless the header `If-Match` names this state; `*` names each.

    A weak tag never matches (RFC 9110 section 8.8.3.2).
    """
    if not if_match.strip():
        raise Problem("precondition_required", PROBLEMS["precondition_required"].advice)
    if if_match.strip() == "*":
        return
    if not _LIST.fullmatch(if_match):
        raise Problem(
            "malformed_request",
            "If-Match must be the ETag of the record as it was sent, in double quotes, or *.",
        )
    if etag not in (match[0] for match in _TAG.finditer(if_match)):
        raise Problem("changed_meanwhile", PROBLEMS["changed_meanwhile"].advice)
