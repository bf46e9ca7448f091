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

from identity.api.framework.problems import Problem
from identity.api.models import StoredAnswer

STORED_FOR = timedelta(hours=24)
REPLAYED = {"Idempotent-Replayed": "true"}
_KEY = re.compile(r'(?:"([\x20\x21\x23-\x5b\x5d-\x7e]{1,255})"|([A-Za-z0-9._~:+/=-]{1,255}))')
_MOST_DELETED = 100  # old answers that one request deletes: more than it adds


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to a change: what is shown now, and what a repeated request is answered with."""

    shown: Any
    stored: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def answer_once(request: Request, client_id: str, at: datetime, do: Callable[[], Done]) -> Response:
    """The answer that this request got before, or does it and stores the answer; atomic."""
    asked = answer_to(request, client_id) if request.method == "POST" else None
    with transaction.atomic():
        if asked is not None and (before := answer_before(asked, at)):
            headers = {**before.headers, **REPLAYED}
            return Response(before.body or None, status=before.status, headers=headers)
        done = do()
        if asked is not None:
            asked.status, asked.headers = done.status, dict(done.headers)
            asked.body, asked.stored_at = done.stored, at
            _store(asked)
    return Response(done.shown, status=done.status, headers=dict(done.headers))


def answer_to(request: Request, client_id: str) -> StoredAnswer | None:
    """What is to be stored; None if the request has no key. Raises Problem for a malformed one."""
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
    key = _hash(match[1] or match[2])
    return StoredAnswer(client_id=client_id, key=key, request=_hash(asked))


def answer_before(asked: StoredAnswer, at: datetime) -> StoredAnswer | None:
    """The answer that this request got before. Only inside the transaction of the change.

    Raises Problem if the key was used for another request, or if the first one is under way.
    """
    _lock(asked)
    row = StoredAnswer.objects.filter(
        client_id=asked.client_id, key=asked.key, stored_at__gt=at - STORED_FOR
    ).first()
    if row is not None and row.request != asked.request:
        raise Problem("key_used_before")
    return row


def _store(answer: StoredAnswer) -> None:
    """In the place of one that is too old, and delete some others that are."""
    StoredAnswer.objects.bulk_create(
        [answer],
        update_conflicts=True,
        unique_fields=["client_id", "key"],
        update_fields=["request", "status", "headers", "body", "stored_at"],
    )
    too_old = StoredAnswer.objects.filter(stored_at__lte=answer.stored_at - STORED_FOR)
    old = too_old.order_by("stored_at")
    # Skip what another transaction is deleting: neither waits for the other.
    found = old.select_for_update(skip_locked=True).values_list("pk", flat=True)
    StoredAnswer.objects.filter(pk__in=list(found[:_MOST_DELETED])).delete()


def _lock(asked: StoredAnswer) -> None:
    """Until the transaction ends. On SQLite it has the only lock there is, so others wait."""
    if connection.vendor != "postgresql":
        return
    number = int(_hash(f"{asked.client_id} {asked.key}")[:16], 16) - 2**63
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        [(is_locked,)] = cursor.fetchall()
    if not is_locked:
        raise Problem("request_in_progress", headers={"Retry-After": "1"})


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_TAG = re.compile(r'(W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_LIST = re.compile(rf"\s*{_TAG.pattern}(?:\s*,\s*{_TAG.pattern})*\s*")


def etag_of(representation: Mapping[str, Any]) -> str:
    """A strong entity-tag: the same only for the same record in the same state."""
    text = json.dumps(representation, sort_keys=True, separators=(",", ":"))
    return f'"{_hash(text)[:32]}"'


def require_match(if_match: str, etag: str) -> None:
    """Raises Problem unless `If-Match` has this tag, or `*`; no weak one (RFC 9110 8.8.3.2)."""
    if not if_match.strip():
        raise Problem("precondition_required")
    if if_match.strip() == "*":
        return
    if not _LIST.fullmatch(if_match):
        raise Problem(
            "malformed_request",
            "If-Match must be the ETag of the record as it was sent, in double quotes, or *.",
        )
    if etag not in (match[0] for match in _TAG.finditer(if_match)):
        raise Problem("changed_meanwhile")
