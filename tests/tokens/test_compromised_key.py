"""Keys as they are published, and a compromised one that is stopped at once (contract 2 and 6)."""

import re
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from taxpayers.models import Change
from taxpayers.repeated import attempt
from taxpayers.services import Author, ServiceError
from tests.status_lists.reader import JWKS, get
from tests.support.answers import body_of, headers_of
from tests.support.at_once import at_once
from tests.support.erp import Erp
from tests.support.outages import database_out_of_reach
from tests.support.staff import errors_of, list_url, page_url, staff_client, task_url, text_of
from tests.tokens.test_signing import AT, MOMENT, key
from tokens.keys import signer as signing, store as key_store
from tokens.keys.ring import ALGORITHMS, LEEWAY, PUBLISHED_AHEAD, Key, KeyRing
from tokens.keys.signer import REFRESH_INTERVAL, clear_key_ring_cache, current_key_ring
from tokens.keys.store import read_key_ring, rotate, stop_compromised_key
from tokens.lifetime import TOKEN_LIFETIME
from tokens.models import SigningKey

BY = Author("officer", "203.0.113.50")
WHY: dict[str, Any] = {"reason": "laptop stolen", "by": BY, "at": AT}
VERIFIES = TOKEN_LIFETIME + LEEWAY  # so long after its successor began to sign


def kids(keys: tuple[Key, ...]) -> list[str]:
    return [one.kid for one in keys]


# --- The ring, as values --------------------------------------------------------------------------
A_DAY_AGO = AT - timedelta(days=1)
GONE = key("gone", AT - timedelta(days=90))
SIGNS = key("signs", A_DAY_AGO)
WAITS = key("waits", AT + timedelta(minutes=5))
NEW = key("new", AT)


def stopped(one: Key) -> Key:
    return replace(one, is_compromised=True)


RETIRED, SECOND = key("retired", A_DAY_AGO), key("second", AT - timedelta(minutes=50))
# What happened; the keys, the moment, which one signs, and which are published.
RINGS = {
    "the signing key": ((stopped(SIGNS), NEW), AT, "new", ["new"]),
    "a clock that is slow": ((stopped(SIGNS), NEW), AT - timedelta(hours=1), "new", ["new"]),
    "while another one waits": ((stopped(SIGNS), WAITS, NEW), AT, "new", ["waits", "new"]),
    "a key that waited does not sign later":
        ((stopped(SIGNS), WAITS, NEW), WAITS.signs_from, "new", ["waits", "new"]),
    "a waiting key": ((SIGNS, stopped(WAITS), NEW), AT, "new", ["signs", "new"]),
    "the key before a stopped one verifies as long as its last token lives":
        ((SIGNS, stopped(WAITS), NEW), AT + VERIFIES - MOMENT, "new", ["signs", "new"]),
    "a retired key signs no more, also not where the clock is slow":
        ((RETIRED, stopped(SECOND), NEW), AT - MOMENT, "new", ["retired", "new"]),
    "a key that was gone stays gone": ((GONE, stopped(SIGNS), NEW), AT, "new", ["new"]),
}  # fmt: skip


@pytest.mark.parametrize(("keys", "at", "signer", "published"), RINGS.values(), ids=RINGS)
def test_a_compromised_key_neither_signs_nor_is_published(
    keys: tuple[Key, ...], at: datetime, signer: str, published: list[str]
) -> None:
    ring = KeyRing(keys)
    assert ring.signer(at).kid == signer
    assert kids(ring.published(at)) == published


def test_only_the_newest_key_waits() -> None:
    """Another rotation needs not wait for a key that will never sign."""
    assert KeyRing((stopped(SIGNS), WAITS, NEW)).waiting(AT) is None
    assert KeyRing((SIGNS, WAITS)).waiting(AT) == WAITS


# --- Stopping one ---------------------------------------------------------------------------------
@pytest.fixture
def signer(db: None) -> Key:
    return read_key_ring(A_DAY_AGO).signer(AT)


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_the_signing_key_is_stopped_and_a_new_one_signs_at_once(signer: Key, alg: str) -> None:
    new = stop_compromised_key(kid=signer.kid, alg=alg, **WHY)
    assert (new.alg, new.signs_from) == (alg, AT)
    ring = read_key_ring(AT)
    assert ring.signer(AT) == new
    assert kids(ring.published(AT)) == [new.kid]


def test_a_key_that_waits_and_one_that_retired_can_be_stopped_too(signer: Key) -> None:
    waits = rotate(alg="ES256", by=BY, at=AT)
    second = stop_compromised_key(kid=waits.kid, alg="ES256", **WHY)
    ring = read_key_ring(AT)
    assert ring.signer(AT) == second
    assert kids(ring.published(AT)) == [signer.kid, second.kid]

    later = {**WHY, "at": AT + timedelta(minutes=30)}  # the first one still verifies
    third = stop_compromised_key(kid=signer.kid, alg="ES256", **later)
    ring = read_key_ring(later["at"])
    assert kids(ring.published(later["at"])) == [second.kid, third.kid]
    assert ring.signer(later["at"]) == third


def test_the_private_part_of_a_stopped_key_is_deleted(signer: Key) -> None:
    stop_compromised_key(kid=signer.kid, alg="ES256", **WHY)
    row = SigningKey.objects.get(kid=signer.kid)
    assert bytes(row.private_key) == b""
    assert row.compromised_at == AT
    # Also where a process has it in memory.
    known = KeyRing((signer,))
    assert [k.private_key for k in read_key_ring(AT, known).keys if k.kid == signer.kid] == [None]


def test_the_history_has_who_when_and_why_for_both_keys(signer: Key) -> None:
    new = stop_compromised_key(kid=signer.kid, alg="RS256", **WHY)
    changes = Change.objects.filter(action="rotate_signing_key").order_by("pk")
    assert {(c.by, c.address, c.at, c.reason) for c in changes} == {
        ("officer", "203.0.113.50", AT, "laptop stolen")
    }
    assert [(c.label, c.before, c.after) for c in changes] == [
        (
            new.kid,
            {"kid": signer.kid, "alg": "ES256"},
            {"kid": new.kid, "alg": "RS256", "signs_from": AT.isoformat()},
        ),
        (signer.kid, {"compromised_at": None}, {"compromised_at": AT.isoformat()}),
    ]


def test_a_key_that_is_not_published_is_named_and_nothing_changes(signer: Key) -> None:
    second = rotate(alg="ES256", by=BY, at=AT - timedelta(hours=2))
    third = stop_compromised_key(kid=second.kid, alg="ES256", **WHY)
    before = list(SigningKey.objects.order_by("generation").values())
    for kid, fault in {
        "unknown": f"There is no signing key unknown. Published now: {third.kid}.",
        "": f"There is no signing key . Published now: {third.kid}.",
        signer.kid: f"The key {signer.kid} is no longer published, and no token that it signed is",
        second.kid: f"The key {second.kid} was stopped as compromised 2026-11-21 18:00+08:00.",
    }.items():
        with pytest.raises(ServiceError) as error:
            stop_compromised_key(kid=kid, alg="ES256", **WHY)
        assert str(error.value).startswith(fault)
    assert list(SigningKey.objects.order_by("generation").values()) == before


@pytest.mark.django_db(transaction=True)
def test_of_two_who_stop_a_key_at_once_one_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    kid = read_key_ring(A_DAY_AGO).signer(AT).kid
    together = threading.Barrier(2, timeout=20)
    published_row = key_store._published_row

    def find_together(kid: str, at: datetime) -> SigningKey:
        row = published_row(kid, at)
        if connection.vendor == "postgresql":  # SQLite lets one transaction begin at a time
            together.wait()
        return row

    monkeypatch.setattr(key_store, "_published_row", find_together)
    outcomes = at_once(*[lambda: stop_compromised_key(kid=kid, alg="ES256", **WHY)] * 2)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Key", "ServiceError"]
    assert SigningKey.objects.count() == 2
    assert Change.objects.count() == 2


def is_accepted(token: str) -> bool:
    response = Client().get("/api/v1/me", headers={"authorization": f"Bearer {token}"})
    assert response.status_code in (200, 401)
    return response.status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_server_learns_of_a_stopped_key_also_after_its_connection_broke(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its thread must replace the connection itself: no request ends there."""
    cache = signing.KeyRingCache()
    now = datetime.now(UTC)
    read = partial(attempt, cache.read, signing.logger, "signing keys not read")

    def read_on_a_connection_that_breaks() -> tuple[Key, Key, Key]:
        read()
        first = cache.get(now).signer(now)
        connection.connection.close()  # as when the server has ended
        stop = partial(stop_compromised_key, kid=first.kid, alg="ES256", **WHY | {"at": now})
        (new,) = at_once(stop)
        for _ in range(2):
            read()
        return first, new, cache.get(now).signer(now)

    ((first, new, signs),) = at_once(read_on_a_connection_that_breaks)
    assert signs == new != first
    assert [record.message for record in caplog.records] == ["signing keys not read"]
    assert signing.READ_EVERY.total_seconds() == 1


# --- The staff pages ------------------------------------------------------------------------------
def test_a_security_officer_stops_a_key_from_its_page(erp: Erp) -> None:
    old = body_of(erp.login())["access_token"]
    row = SigningKey.objects.get()
    officer = staff_client("security officer", "ravi")
    url = task_url(row, "stop_compromised_key")
    (button,) = officer.get(page_url(row)).context["buttons"]
    assert (button.url, button.title) == (url, "Stop: the key is compromised")
    asked = text_of(officer.get(url))
    assert "1 client has a token of this key." in asked
    assert "Reason (optional)" not in asked
    assert "ten minutes" not in asked

    sent = {"alg": "ES256", "hint": row.kid[-6:], "reason": "laptop stolen"}
    assert "required" in errors_of(officer.post(url, {**sent, "reason": " "}))
    assert "not its last characters" in errors_of(officer.post(url, {**sent, "hint": "another"}))
    assert SigningKey.objects.count() == 1
    response = officer.post(url, sent)
    new = SigningKey.objects.latest("generation")
    assert response["Location"] == page_url(row)
    said = f"The key {row.kid} is stopped: no token that it signed is accepted. {new.kid} signs now"
    assert said in text_of(officer.get(page_url(row)))
    clear_key_ring_cache()
    assert not is_accepted(old)
    assert [jwk["kid"] for jwk in Client().get(JWKS).json()["keys"]] == [new.kid]
    assert is_accepted(body_of(erp.login())["access_token"])
    row.refresh_from_db()
    page = officer.get(page_url(row))
    for shown in ("Stopped: compromised", "laptop stolen", "Compromised"):
        assert shown in text_of(page)
    assert page.context["buttons"] == []
    listed = text_of(officer.get(list_url(SigningKey)))
    assert "Stopped: compromised" in listed
    assert "Signing" in listed
    change = Change.objects.latest("pk")
    assert (change.by, change.address, change.reason) == ("ravi", "203.0.113.50", "laptop stolen")


def test_the_first_page_shows_the_age_of_the_key_that_signs_now(signer: Key) -> None:
    now = datetime.now(UTC)
    SigningKey.objects.update(signs_from=now - timedelta(days=500))
    officer = staff_client("security officer", "ravi")
    assert officer.get("/admin/").context["signing_key_days"] == 500
    waits = rotate(alg="ES256", by=BY, at=now)
    new = stop_compromised_key(kid=waits.kid, alg="ES256", reason="x", by=BY, at=now)
    SigningKey.objects.filter(kid=waits.kid).update(signs_from=now - timedelta(days=1))
    assert officer.get("/admin/").context["signing_key"].kid == new.kid
    SigningKey.objects.filter(kid=new.kid).delete()
    assert officer.get("/admin/").context["signing_key_days"] == 500


METADATA, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
METHODS = ["client_secret_post", "client_secret_basic", "private_key_jwt"]
CLIENT_ALGORITHMS = ["ES256", "Ed25519", "EdDSA", "PS256"]
PUBLIC = {
    "Content-Type": "application/json",
    "Cache-Control": "public, max-age=300",
    "Access-Control-Allow-Origin": "*",
}


@pytest.mark.parametrize("path", [METADATA, OPENID])
@pytest.mark.parametrize("base", ["https://identity.example.org", "http://10.0.0.1:8123/a/b"])
def test_the_metadata_has_these_members_only(path: str, base: str, settings: Settings) -> None:
    settings.AUTH_URL = base
    response = get(path, accept="text/html", host="evil.example.org")
    assert (response.status_code, headers_of(response)) == (200, PUBLIC)
    assert body_of(response) == {
        "issuer": base,
        "token_endpoint": f"{base}/connect/token",
        "jwks_uri": f"{base}/.well-known/jwks.json",
        "service_documentation": f"{base}/",
        "api_teams_documentation": f"{base}/api-teams",
        "scopes_supported": ["InvoicingAPI"],
        "response_types_supported": [],
        "grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": METHODS,
        "token_endpoint_auth_signing_alg_values_supported": CLIENT_ALGORITHMS,
        "dpop_signing_alg_values_supported": CLIENT_ALGORITHMS,
        "introspection_endpoint": f"{base}/connect/introspect",
        "introspection_endpoint_auth_methods_supported": [
            *("client_secret_post", "client_secret_basic")
        ],
        "introspection_signing_alg_values_supported": ["ES256", "RS256", "PS256"],
        "revocation_endpoint": f"{base}/connect/revocation",
        "revocation_endpoint_auth_methods_supported": METHODS,
        "revocation_endpoint_auth_signing_alg_values_supported": CLIENT_ALGORITHMS,
        "status_list_aggregation_endpoint": f"{base}/status",
        "credentials_endpoint": f"{base}/api/v1/credentials/current",
        "granted_permissions_endpoint": f"{base}/api/v1/permissions",
        "login_explanation_endpoint": f"{base}/api/v1/logins/{{reference}}/explanation",
    }


def test_the_metadata_name_certificates_and_where_clients_present_them(settings: Settings) -> None:
    settings.AUTH_URL, settings.MTLS_URL = "https://id.example.org", "https://mtls.id.example.org"
    metadata = body_of(get(METADATA))
    for endpoint in ("token", "revocation"):
        methods = metadata[f"{endpoint}_endpoint_auth_methods_supported"]
        assert methods == [*METHODS, "tls_client_auth"]
    assert metadata["tls_client_certificate_bound_access_tokens"] is True
    aliases = metadata["mtls_endpoint_aliases"]
    assert aliases == {
        name: url.replace("https://id.", "https://mtls.id.")
        for name, url in metadata.items()
        if name in aliases
    }
    assert aliases.keys() >= {"token_endpoint", "revocation_endpoint", "credentials_endpoint"}
    assert metadata["issuer"] == "https://id.example.org"
    assert metadata["jwks_uri"].startswith("https://id.example.org/")


@pytest.mark.django_db
def test_the_jwks_has_public_parts_only() -> None:
    at = datetime.now(UTC)
    first = current_key_ring(at - timedelta(days=1)).keys[0]
    waits = rotate(alg="PS256", by=Author("officer"), at=at)
    response = get(JWKS, accept="text/html")
    assert (response.status_code, headers_of(response)) == (200, PUBLIC)
    key, other = body_of(response)["keys"]
    assert set(key) == {"kty", "crv", "x", "y", "use", "alg", "kid"}
    assert (key["kty"], key["crv"], key["use"], key["alg"]) == ("EC", "P-256", "sig", "ES256")
    assert set(other) == {"kty", "n", "e", "use", "alg", "kid"}
    assert (key["kid"], other["kid"]) == (first.kid, waits.kid)


def test_every_copy_of_the_jwks_is_renewed_before_a_new_key_signs() -> None:
    max_age = re.search(r"max-age=(\d+)", PUBLIC["Cache-Control"])
    assert max_age is not None
    assert REFRESH_INTERVAL + timedelta(seconds=int(max_age[1])) < PUBLISHED_AHEAD


@pytest.mark.parametrize("path", [METADATA, OPENID, JWKS])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "NONSENSE"])
def test_any_other_method_is_answered_in_json(path: str, method: str) -> None:
    response = get(path, method, accept="text/html")
    assert response.status_code == 405
    assert headers_of(response) == {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "Allow": "GET, HEAD",
    }
    assert body_of(response) == {
        "error": "invalid_request",
        "error_description": "This address takes GET and HEAD only.",
    }


@pytest.mark.django_db
def test_keys_that_cannot_be_read_are_a_503_in_json() -> None:
    with database_out_of_reach():
        response = get(JWKS)
    assert response.status_code == 503
    assert headers_of(response) == {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "Retry-After": "5",
    }
    assert body_of(response)["error"] == "temporarily_unavailable"
