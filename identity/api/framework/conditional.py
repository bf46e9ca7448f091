"""`ETag` and `If-Match` (RFC 9110 section 13.1.1): no change overwrites an unseen one."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from identity.api.framework.problems import PROBLEMS, Problem

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
