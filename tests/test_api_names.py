"""docs/api-names.md: one name for one thing, in both descriptions and in the records."""

import re
from collections.abc import Iterator
from typing import Any

from identity.api.openapi import describe
from identity.api.urls import records
from identity.developers.openapi.document import document
from tests.every_address.test_records import in_openapi
from tests.servers.processes import CHECKOUT

PAGE = (CHECKOUT / "docs/api-names.md").read_text(encoding="utf-8")
# Of standards, of lists and errors, and what has one surface only and no second name.
OTHERS = frozenset(
    re.findall(
        r"\w+",
        """
    approved_by asked_at capacity decided_at evidence granted_now intermediary_name paper_form
    connected connected_client_id key_fingerprint poll_seconds
    permission replaces return_address return_addresses sign_in_level sign_in_method
    words_hash words_version confirm_url first_used_at from granted representatives to tokens
    access_token token_type expires_in client_assertion client_assertion_type grant_type token
    token_type_hint issuer jwks_uri kty alg use error error_description token_endpoint version
    type title status detail instance errors pointer parameter code items next_cursor has_more
    next_after rows registered unchanged since id kind path before after by address at action
    data name description url blocked credentials issued note help checks question advice
    explanation login login_method environment attempts last_attempt_at last_result
    next_attempt_at timestamp event former_secret_until last_used_at revoked_at source_address
    user_agent is_authenticated certificate clients commit does gets issued_at issued_this_token
    live_secrets logins rate_limit remaining requests reset_endpoint resets_at revoked secrets
    send status_lists
    """,
    )
)


def properties(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("properties"), dict):
            yield from part["properties"]
        for name, inner in part.items():
            if not name.startswith("example"):
                yield from properties(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from properties(inner)


def test_each_name_in_a_description_is_in_the_table() -> None:
    known = set(re.findall(r"`([A-Za-z_.]+)`", PAGE)) | OTHERS
    known |= {part for name in known for part in name.split(".")}
    for described in (describe(records), document("http://x")):
        names = {name for name in properties(described) if not name.endswith("_supported")}
        names -= {name for name in names if name.endswith("_endpoint")}
        assert names - known == set()


def test_each_operation_id_begins_with_the_verb_of_its_record_or_of_a_list() -> None:
    verbs = {record.name.partition("_")[0] for _door, record, _text in in_openapi()}
    verbs |= {"create", "change", "read", "list", "import", "test", "set"}
    for methods in describe(records)["paths"].values():
        for operation in methods.values():
            assert operation["operationId"].partition("_")[0] in verbs
