"""Secrets, keys and certificates of system users: every change, and what it leaves (contract 3)."""

import json
from datetime import UTC, datetime, timedelta
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_django import Settings

from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import Change, Credential, SystemUser
from taxpayers.services import (
    ServiceError,
    bind_tokens,
    register_public_credential,
    revoke_credential,
    use_public_credential,
)
from tests.certificates.certificate_erp import SUBJECT, authority, certificate
from tests.client_auth.key_erp import BY, jwks, new_pair
from tests.client_auth.kinds import CERTIFICATE, KEY, KINDS, SECRET, Kind, newest
from tests.support import make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("takes_certificates")]

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY, YEAR = timedelta(days=1), timedelta(days=365)
NOW: dict[str, Any] = {"by": BY, "at": AT}
WHY: dict[str, Any] = {"reason": "asked by letter", **NOW}
PEM = certificate().pem
NETWORKS = "192.0.2.0/24 2001:db8::/32"
PAIRS = [
    pytest.param(*two, id=" ".join(kind.name.value for kind in two))
    for two in permutations(KINDS, 2)
]


def live(user: SystemUser) -> list[Credential]:
    return [row for row in user.credentials.order_by("pk") if row.is_live(AT)]


def actions() -> list[str]:
    return list(Change.objects.order_by("pk").values_list("action", flat=True))


def of_kind(kind: Kind) -> Any:
    """A client that has one credential of this kind since yesterday, and no history."""
    secret = make.credential(created_at=AT - DAY)
    if kind is not SECRET:
        kind.use(secret.system_user, at=AT - DAY)
        Change.objects.all().delete()
        secret.delete()
    user = SystemUser.objects.get()
    return SimpleNamespace(system_user=user, client_id=user.client_id)


@pytest.fixture
def user() -> SystemUser:
    found: SystemUser = of_kind(SECRET).system_user
    return found


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_change_of_kind_revokes_what_there_was_in_the_same_moment(
    before: Kind, after: Kind
) -> None:
    owner = of_kind(before)
    before.add(owner, at=AT - DAY)
    owner.system_user.credentials.update(allowed_networks=NETWORKS)
    Change.objects.all().delete()
    after.use(owner.system_user, at=AT)
    user = SystemUser.objects.get()
    (row,) = live(user)
    assert (row.kind, user.token_endpoint_auth_method) == (after.name, after.method)
    assert (row.expires_at, row.allowed_networks) == (AT + YEAR, NETWORKS)
    assert user.last_secret_ends_at == row.expires_at
    assert actions() == ["revoke_secret", "revoke_secret", "change_login_method", after.issued]
    *changes, issued = Change.objects.order_by("pk")
    assert {change.reason for change in changes} == {"asked by letter"}
    assert [change.after.get("credential") for change in changes[:2]] == [before.name.value] * 2
    assert [change.after["secret_revoked_at"] for change in changes[:2]] == [AT.isoformat()] * 2
    assert changes[-1].before == {"token_endpoint_auth_method": before.method}
    assert changes[-1].after == {"token_endpoint_auth_method": after.method}
    names: dict[Kind, dict[str, Any]] = {
        KEY: {"kid": row.kid},
        CERTIFICATE: {"certificate_name": row.certificate_name},
    }
    assert issued.after == {
        "secret": str(row),
        "credential": after.name.value,
        "secret_expires_at": "2027-03-01T12:00:00+00:00",
        "allowed_networks": NETWORKS,
        **names.get(after, {}),
    }


@pytest.mark.parametrize(("has", "other"), PAIRS)
def test_a_client_gets_no_credential_of_another_kind(has: Kind, other: Kind) -> None:
    owner = of_kind(has)
    with pytest.raises(ServiceError, match=r"has no secret|First change how it logs in to"):
        other.add(owner, at=AT)
    with pytest.raises(ServiceError, match=rf"{owner.client_id} logs in with a .* already"):
        has.use(owner.system_user, at=AT)
    assert (len(live(owner.system_user)), actions()) == (1, [])


KEYS = [new_pair() for _ in range(3)]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"keys": "x"}, "no public key"),
        ({"keys": json.dumps(KEYS[0].private_jwk)}, "PRIVATE"),
        ({"keys": jwks(KEYS[0]), "reason": ""}, "Give a reason"),
        ({"keys": jwks(KEYS[0]), "expires_at": AT - YEAR}, "the key would end"),
        ({"keys": jwks(*KEYS)}, "two keys at most"),
        ({"certificate": "x"}, "no certificate"),
        ({"certificate": f"{PEM}-----BEGIN PRIVATE KEY-----"}, "PRIVATE"),
        ({"certificate": PEM, "reason": ""}, "a reason: it is missing"),
        ({"certificate": PEM, "expires_at": AT}, "the certificate would end"),
    ],
)
def test_what_cannot_be_changed_changes_nothing(
    user: SystemUser, given: dict[str, Any], text: str
) -> None:
    with pytest.raises(ServiceError, match=text):
        use_public_credential(**{"system_user": user, **WHY, **given})
    user.refresh_from_db()
    assert (user.token_endpoint_auth_method, len(live(user)), actions()) == ("", 1, [])


def test_where_no_certificate_is_asked_for_no_client_needs_one(
    user: SystemUser, settings: Settings
) -> None:
    settings.MTLS_URL = ""
    with pytest.raises(ServiceError, match="must set MTLS_URL first"):
        CERTIFICATE.use(user)
    with pytest.raises(ServiceError, match="must set MTLS_URL first"):
        bind_tokens(system_user=user, binding=TokenBinding.TLS, **WHY)
    assert bind_tokens(system_user=user, binding=TokenBinding.DPOP, **WHY).token_binding == "dpop"
    settings.MTLS_URL = "https://mtls.example.org"
    assert bind_tokens(system_user=user, binding=TokenBinding.TLS, **WHY).token_binding == "tls"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.value)
def test_there_are_two_live_ones_at_most(kind: Kind) -> None:
    owner = of_kind(kind)
    kind.add(owner, at=AT)
    second = newest(owner)
    with pytest.raises(ServiceError, match=r"The new one, .*, is not used yet"):
        kind.add(owner, at=AT)
    revoke_credential(credential=second, **WHY)
    kind.add(owner, at=AT)
    assert len(live(owner.system_user)) == 2
    assert Change.objects.get(action="revoke_secret").before == {
        "secret": str(second),
        "credential": kind.name.value,
        "secret_revoked_at": None,
    }
    assert actions() == [kind.issued, "revoke_secret", kind.issued]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.value)
def test_a_further_one_gets_the_networks_of_the_newest_that_is_not_revoked(kind: Kind) -> None:
    owner = of_kind(kind)
    rows: list[Credential] = []
    for networks in ("192.0.2.1/32", "192.0.2.2/32", "192.0.2.3/32"):
        if rows:
            kind.add(owner, at=AT)
        rows.append(newest(owner))
        Credential.objects.filter(pk=rows[-1].pk).update(allowed_networks=networks)
        if len(rows) == 1:
            Credential.objects.update(slot=None, created_at=AT - DAY, expires_at=AT - DAY / 2)
    revoke_credential(credential=rows[-1], **WHY)
    kind.add(owner, at=AT)
    assert newest(owner).allowed_networks == "192.0.2.2/32"
    last = Change.objects.latest("pk")
    assert (last.action, last.after["allowed_networks"]) == (kind.issued, "192.0.2.2/32")
    if kind is not CERTIFICATE:
        revoke_credential(credential=newest(owner), **WHY)
        kind.add(owner, at=AT, allowed_networks=["2001:db8::/32"])
        assert newest(owner).allowed_networks == "2001:db8::/32"


def test_a_key_that_is_there_or_was_removed_is_not_added_again(user: SystemUser) -> None:
    pair = KEY.use(user, at=AT).pair
    with pytest.raises(ServiceError, match=f"The key {pair.kid} is there already"):
        register_public_credential(reason="a test", system_user=user, keys=jwks(pair), **NOW)
    revoke_credential(credential=live(user)[0], **WHY)
    with pytest.raises(ServiceError, match=r"was removed 2026-03-01 .* another kid"):
        register_public_credential(reason="a test", system_user=user, keys=jwks(pair), **NOW)


def test_two_system_users_may_have_keys_of_the_same_name_and_each_two_at_once() -> None:
    pairs = [new_pair(kid="1"), new_pair(kid="2")]
    for _ in range(2):
        user = make.system_user()
        use_public_credential(system_user=user, keys=jwks(*pairs), **WHY)
    assert Credential.objects.count() == 4


def test_a_name_that_works_is_not_registered_again(user: SystemUser) -> None:
    use_public_credential(system_user=user, certificate=PEM, **WHY)
    renewed = authority().issue(SUBJECT).pem
    with pytest.raises(ServiceError, match=f"{SUBJECT} is there already"):
        register_public_credential(reason="a test", system_user=user, certificate=renewed, **NOW)


@pytest.mark.parametrize("ended", ["revoked", "expired"])
def test_a_name_that_has_ended_can_be_registered_again(user: SystemUser, ended: str) -> None:
    use_public_credential(system_user=user, certificate=PEM, **WHY)
    (old,), at = live(user), AT
    if ended == "revoked":
        revoke_credential(credential=old, **WHY)
    else:
        at = AT + YEAR + timedelta(seconds=1)
    register_public_credential(reason="a test", system_user=user, certificate=PEM, by=BY, at=at)
    new = user.credentials.latest("pk")
    old.refresh_from_db()
    assert new.pk != old.pk  # so the tokens of the old one stay ended
    assert (old.lookup != new.lookup, old.slot) == (True, None)
    revoke_credential(credential=new, reason="r", by=BY, at=at)
    register_public_credential(reason="a test", system_user=user, certificate=PEM, by=BY, at=at)
    assert user.credentials.filter(certificate_name=old.certificate_name).count() == 3
