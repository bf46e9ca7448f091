"""Keys of system users and how they log in: every change, and what it leaves (contract 3 and 4)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import Change, Credential, SystemUser
from taxpayers.services import (
    ServiceError,
    bind_tokens,
    issue_secret,
    register_client_keys,
    register_system_user,
    register_system_user_with_keys,
    revoke_credential,
    use_client_secret,
    use_private_key,
)
from tests.client_auth.key_erp import BY, jwks, new_pair
from tests.support.factories import CredentialFactory, SystemUserFactory, TaxpayerFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
YEAR = timedelta(days=365)
NOW: dict[str, Any] = {"by": BY, "at": AT}
WHY: dict[str, Any] = {"reason": "asked by letter", **NOW}


def live(user: SystemUser) -> list[Credential]:
    return [row for row in user.credentials.order_by("pk") if row.is_live(AT)]


def actions() -> list[str]:
    return list(Change.objects.order_by("pk").values_list("action", flat=True))


@pytest.fixture
def user() -> SystemUser:
    """It logs in with one secret."""
    secret = CredentialFactory.create(created_at=AT - timedelta(days=1))
    return secret.system_user


def test_a_change_to_a_key_revokes_the_secrets_in_the_same_moment(user: SystemUser) -> None:
    pair = new_pair()
    changed = use_private_key(system_user=user, keys=jwks(pair), **WHY)
    assert (changed.token_endpoint_auth_method, changed.uses_key) == ("private_key_jwt", True)
    (key,) = live(changed)
    assert (key.kid, key.hint, key.expires_at) == (pair.kid, pair.kid[-4:], AT + YEAR)
    assert str(key) == f"…{pair.kid[-4:]}"
    assert changed.client_jwks == '{"keys": [' + key.public_jwk + "]}"
    user.refresh_from_db()
    assert user.last_secret_ends_at == key.expires_at
    assert actions() == ["revoke_secret", "change_login_method", "register_client_key"]
    change = Change.objects.get(action="change_login_method")
    assert change.before == {"token_endpoint_auth_method": ""}
    assert change.after == {"token_endpoint_auth_method": "private_key_jwt"}
    reasons = Change.objects.exclude(action="register_client_key").values_list("reason", flat=True)
    assert set(reasons) == {"asked by letter"}


def test_a_change_to_a_secret_removes_the_keys_in_the_same_moment(user: SystemUser) -> None:
    use_private_key(system_user=user, keys=jwks(new_pair(), new_pair()), **WHY)
    issued = use_client_secret(system_user=user, expires_at=AT + timedelta(days=7), **WHY)
    assert not issued.system_user.uses_key
    assert issued.system_user.client_jwks == '{"keys": []}'
    (secret,) = live(issued.system_user)
    assert (secret, secret.is_key, secret.kid) == (issued.secret, False, "")
    assert secret.expires_at == AT + timedelta(days=7)
    tail = ["revoke_secret", "revoke_secret", "change_login_method", "rotate_secret"]
    assert actions()[-4:] == tail


def test_a_system_user_is_registered_with_keys_and_no_secret() -> None:
    pair = new_pair()
    owner = register_system_user_with_keys(
        taxpayer=TaxpayerFactory.create(tin="C1"), name="ERP", keys=jwks(pair), **NOW
    )
    assert owner.uses_key
    assert [row.kid for row in live(owner)] == [pair.kid]
    change = Change.objects.get()
    assert change.action == "issue_credentials"
    assert change.after["token_endpoint_auth_method"] == "private_key_jwt"
    assert change.after["kid"] == pair.kid


def test_there_are_two_live_keys_at_most(user: SystemUser) -> None:
    use_private_key(system_user=user, keys=jwks(new_pair()), **WHY)
    second = new_pair()
    assert len(register_client_keys(system_user=user, keys=jwks(second), **NOW)) == 1
    with pytest.raises(ServiceError, match=r"First revoke the one that is no longer in use"):
        register_client_keys(system_user=user, keys=jwks(new_pair()), **NOW)
    revoke_credential(credential=user.credentials.get(hint=second.kid[-4:]), **WHY)
    assert len(register_client_keys(system_user=user, keys=jwks(new_pair()), **NOW)) == 1
    three = jwks(new_pair(), new_pair(), new_pair())
    with pytest.raises(ServiceError, match="two keys at most"):
        use_private_key(system_user=SystemUserFactory.create(), keys=three, **WHY)


def test_a_key_that_is_there_or_was_removed_is_not_added_again(user: SystemUser) -> None:
    pair = new_pair()
    use_private_key(system_user=user, keys=jwks(pair), **WHY)
    with pytest.raises(ServiceError, match=f"The key {pair.kid} is there already"):
        register_client_keys(system_user=user, keys=jwks(pair), **NOW)
    revoke_credential(credential=user.credentials.get(hint=pair.kid[-4:]), **WHY)
    with pytest.raises(ServiceError, match=r"was removed 2026-03-01 .* another kid"):
        register_client_keys(system_user=user, keys=jwks(pair), **NOW)


def test_two_system_users_may_have_keys_of_the_same_name() -> None:
    for _ in range(2):
        user = SystemUserFactory.create()
        use_private_key(system_user=user, keys=jwks(new_pair(kid="1")), **WHY)
    assert Credential.objects.count() == 2


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda user: register_client_keys(system_user=user, keys=jwks(new_pair()), **NOW),
            "First",
        ),
        (lambda user: use_client_secret(system_user=user, **WHY), "with a secret already"),
        (lambda user: use_private_key(system_user=user, keys="x", **WHY), "no public key"),
        (
            lambda user: use_private_key(system_user=user, keys=jwks(new_pair()), reason="", **NOW),
            "Give a reason",
        ),
        (
            lambda user: use_private_key(
                system_user=user, keys=jwks(new_pair()), expires_at=AT - YEAR, **WHY
            ),
            "the key would end",
        ),
    ],
)
def test_what_cannot_be_changed_changes_nothing(user: SystemUser, change: Any, text: str) -> None:
    with pytest.raises(ServiceError, match=text):
        change(user)
    user.refresh_from_db()
    assert not user.uses_key
    assert len(live(user)) == 1
    assert actions() == []


def test_a_client_with_a_key_gets_no_secret(user: SystemUser) -> None:
    use_private_key(system_user=user, keys=jwks(new_pair()), **WHY)
    with pytest.raises(ServiceError, match="logs in with a private key and has no secret"):
        issue_secret(system_user=user, **NOW)
    with pytest.raises(ServiceError, match="logs in with a private key already"):
        use_private_key(system_user=user, keys=jwks(new_pair()), **WHY)


def test_a_private_key_is_refused_and_no_part_of_it_is_stored_or_shown(user: SystemUser) -> None:
    private = json.dumps(new_pair().private_jwk)
    with pytest.raises(ServiceError, match="PRIVATE") as refused:
        use_private_key(system_user=user, keys=private, **WHY)
    d = json.loads(private)["d"]
    assert d not in str(refused.value)
    assert not Change.objects.exists()
    assert not Credential.objects.exclude(public_jwk="").exists()


def test_a_name_is_taken_by_either_kind() -> None:
    taxpayer = TaxpayerFactory.create()
    register_system_user(taxpayer=taxpayer, name="ERP", **NOW)
    with pytest.raises(ServiceError, match="already has a system user named ERP"):
        register_system_user_with_keys(taxpayer=taxpayer, name="ERP", keys=jwks(new_pair()), **NOW)


def test_a_change_of_how_it_logs_in_leaves_the_allowed_networks(user: SystemUser) -> None:
    user.credentials.update(allowed_networks="192.0.2.0/24")
    use_private_key(system_user=user, keys=jwks(new_pair()), **WHY)
    (key,) = live(user)
    assert key.allowed_networks == "192.0.2.0/24"
    assert use_client_secret(system_user=user, **WHY).secret.allowed_networks == "192.0.2.0/24"


def test_a_further_key_gets_the_networks_of_the_present_one_or_others(user: SystemUser) -> None:
    use_private_key(system_user=user, keys=jwks(new_pair()), **WHY)
    user.credentials.update(allowed_networks="192.0.2.0/24")
    (inherited,) = register_client_keys(system_user=user, keys=jwks(new_pair()), **NOW)
    assert inherited.allowed_networks == "192.0.2.0/24"
    revoke_credential(credential=inherited, **WHY)
    given: dict[str, Any] = {"allowed_networks": ["2001:db8::/32"]}
    (other,) = register_client_keys(system_user=user, keys=jwks(new_pair()), **given, **NOW)
    assert other.allowed_networks == "2001:db8::/32"
    registered = Change.objects.filter(action="register_client_key").order_by("pk")
    recorded = [change.after.get("allowed_networks") for change in registered]
    assert recorded == [None, "192.0.2.0/24", "2001:db8::/32"]


def test_tokens_are_bound_to_certificates_only_where_these_are_taken(
    user: SystemUser, settings: Settings
) -> None:
    settings.MTLS_URL = ""
    with pytest.raises(ServiceError, match="takes no client certificates"):
        bind_tokens(system_user=user, binding=TokenBinding.TLS, **WHY)
    assert bind_tokens(system_user=user, binding=TokenBinding.DPOP, **WHY).token_binding == "dpop"
    settings.MTLS_URL = "https://mtls.example.org"
    assert bind_tokens(system_user=user, binding=TokenBinding.TLS, **WHY).token_binding == "tls"
