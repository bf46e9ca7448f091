"""What ends tokens ends them for all who ask, for good, and ends no others (contract 2)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from taxpayers.facts.token_binding import TokenBinding
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.services import (
    Author,
    AuthorKind,
    bind_tokens,
    block_system_user,
    grant_permission,
    issue_secret,
    limit_system_user,
    revoke_codes,
    revoke_credential,
    revoke_permission,
    set_intermediary_active,
    set_taxpayer_active,
    unblock_system_user,
)
from tests.introspection.api import INACTIVE, Api, token_of
from tests.management_api.portal import BASE, SCOPES
from tests.self_service.calls import PERMISSIONS, call
from tests.status_lists.reader import is_ended, reference_of
from tests.support import make
from tests.support.answers import body_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import SUBMIT, VIEW
from tests.support.moments import by, now, why

pytestmark = pytest.mark.django_db
# The clients may use the management API too.
OPERATOR = Author("root (manage.py)", kind=AuthorKind.OPERATOR)
DAY = timedelta(days=1)


@dataclass
class World:
    """A client of an intermediary, its permissions from two taxpayers, and another client."""

    erp: Erp
    permission: GrantedPermission
    elsewhere: GrantedPermission
    other: Erp

    @property
    def user(self) -> SystemUser:
        return self.erp.system_user

    @property
    def own(self) -> Taxpayer:
        return self.erp.system_user.taxpayer

    def new_tokens(self) -> dict[str, str]:
        tin, other = (str(p.taxpayer.identifier) for p in (self.permission, self.elsewhere))
        return {
            "own": token_of(self.erp, scope="InvoicingAPI"),
            "registry": token_of(self.erp, scope="RegistryAPI"),
            "acting": token_of(self.erp, scope="InvoicingAPI", on_behalf_of=tin),
            "elsewhere": token_of(self.erp, scope="InvoicingAPI", on_behalf_of=other),
        }


@pytest.fixture
def world(intermediary: Erp, settings: Settings) -> World:
    settings.SCOPES = {**SCOPES, "Other": {"description": "Other", "audience": "Other"}}
    SystemUser.objects.update(scopes=" ".join(SCOPES))
    one, other = [make.permission(intermediary=intermediary.role) for _ in range(2)]
    return World(intermediary, one, other, new_erp())


Step = Callable[[World], object]


def users(**values: Any) -> Step:
    return lambda w: SystemUser.objects.filter(pk=w.user.pk).update(**values)


def secrets(**values: Any) -> Step:
    return lambda w: Credential.objects.filter(system_user=w.user).update(**values)


def permissions(**values: Any) -> Step:
    return lambda w: GrantedPermission.objects.filter(pk=w.permission.pk).update(**values)


def own_taxpayer(is_active: bool) -> Step:
    return lambda w: set_taxpayer_active(taxpayer=w.own, is_active=is_active, **why(OPERATOR))


def represented(is_active: bool) -> Step:
    return lambda w: set_taxpayer_active(
        taxpayer=w.permission.taxpayer, is_active=is_active, **why(OPERATOR)
    )


def role(is_active: bool) -> Step:
    return lambda w: set_intermediary_active(
        intermediary=w.erp.role, is_active=is_active, **why(OPERATOR)
    )


def bound(binding: TokenBinding) -> Step:
    return lambda w: bind_tokens(system_user=w.user, binding=binding, **why(OPERATOR))


def limit(*codes: str, taxpayers: tuple[TaxpayerId, ...] = ()) -> Step:
    return lambda w: limit_system_user(
        system_user=w.user, permissions=codes, taxpayers=taxpayers, **why(OPERATOR)
    )


def limit_to_another_taxpayer(w: World) -> None:
    limit(taxpayers=(w.other.system_user.taxpayer.identifier,))(w)


def replace_secret(w: World) -> None:
    issued = issue_secret(reason="a test", system_user=w.user, **by(OPERATOR))
    w.erp.client_secret = issued.credentials.client_secret


def grant_again(w: World) -> None:
    pair: dict[str, Any] = {"taxpayer": w.permission.taxpayer, "intermediary": w.erp.role}
    grant_permission(codes=[SUBMIT, VIEW], **pair, **by(OPERATOR))


def revoke_view(w: World) -> None:
    pair: dict[str, Any] = {"taxpayer": w.permission.taxpayer, "intermediary": w.erp.role}
    revoke_codes(codes=[VIEW], **pair, **why(OPERATOR))


# What ends, and what takes it back; nothing: it is not tried.
OF_ANY: dict[str, tuple[Step, Step | None]] = {
    "block": (
        lambda w: block_system_user(system_user=w.user, **why(OPERATOR)),
        lambda w: unblock_system_user(system_user=w.user, **why(OPERATOR)),
    ),
    "block by SQL": (
        users(blocked_at=now(), blocked_by="x", blocked_reason="y"),
        users(blocked_at=None, blocked_by="", blocked_reason=""),
    ),
    "own taxpayer": (own_taxpayer(False), own_taxpayer(True)),
    "expiry": (users(expires_at=now() - DAY), users(expires_at=None)),
    "scopes": (users(scopes="Other"), users(scopes=" ".join(SCOPES))),
    "secret": (
        lambda w: revoke_credential(
            credential=w.user.credentials.get(revoked_at=None), **why(OPERATOR)
        ),
        replace_secret,
    ),
    "bound tokens only": (bound(TokenBinding.DPOP), bound(TokenBinding.BEARER)),
    "bound tokens only, by SQL": (users(token_binding="tls"), users(token_binding="")),
    "keys instead of secrets": (users(token_endpoint_auth_method="private_key_jwt"), None),
    "another client ID": (users(client_id="ci_other"), None),
    "gone": (lambda w: w.user.delete(), None),
    "another TIN": (lambda w: Taxpayer.objects.filter(pk=w.own.pk).update(tin="C00"), None),
    "expired secret": (secrets(created_at=now() - 2 * DAY, expires_at=now() - DAY), None),
    "secret that is gone": (lambda w: w.user.credentials.all().delete(), None),
}
# And tokens on behalf of another taxpayer only.
OF_ACTING: dict[str, tuple[Step, Step | None]] = {
    "represented taxpayer": (represented(False), represented(True)),
    "role": (role(False), role(True)),
    "end of the role": (
        lambda w: Intermediary.objects.update(active_until=now() - DAY),
        lambda w: Intermediary.objects.update(active_until=None),
    ),
    "permission": (
        lambda w: revoke_permission(permission=w.permission, **why(OPERATOR)),
        grant_again,
    ),
    "expired permission": (
        permissions(valid_from=now() - 2 * DAY, valid_until=now() - DAY),
        permissions(valid_until=None),
    ),
    "permission not yet valid": (permissions(valid_from=now() + DAY), None),
    "a code that ends": (revoke_view, grant_again),
}
# A limit ends tokens for the own taxpayer too; those then have no successor.
LIMITS: dict[str, Step] = {
    "other permissions": limit(SUBMIT),
    "other taxpayers": limit_to_another_taxpayer,
}


def answers(path: str) -> Callable[[str, Api], bool]:
    return lambda token, _api: call("GET", path, token).status_code == 200


def status_list(token: str, _api: Api) -> bool:
    return not is_ended(token)


def introspection(token: str, api: Api) -> bool:
    answer = body_of(api.introspect(token))
    assert answer["active"] or answer == INACTIVE
    return bool(answer["active"])


ME, SELF_SERVICE, MANAGEMENT = map(answers, ("/api/v1/me", PERMISSIONS, f"{BASE}/taxpayers"))
ASKED = {
    "own": (status_list, introspection, ME, SELF_SERVICE),
    "registry": (status_list, MANAGEMENT),
    "acting": (status_list, introspection, ME),
    "elsewhere": (status_list,),
}


def asked(tokens: dict[str, str], api: Api) -> dict[str, set[bool]]:
    return {
        name: {is_active(token, api) for is_active in ASKED[name]} for name, token in tokens.items()
    }


EVENTS = OF_ANY | OF_ACTING
ACTIVE, NONE = ({name: {is_active} for name in ASKED} for is_active in (True, False))


def left_by(event: str) -> dict[str, set[bool]]:
    """What each answers about each token after it."""
    own, elsewhere = event not in OF_ANY, event not in OF_ANY and "role" not in event
    return NONE | {"own": {own}, "registry": {own}, "elsewhere": {elsewhere}}


SWITCHES = (
    *("block", "block by SQL", "own taxpayer", "bound tokens only", "bound tokens only, by SQL"),
    *("secret", "represented taxpayer", "role"),
)


@pytest.mark.parametrize("event", EVENTS)
def test_a_token_that_ended_stays_ended_and_a_new_one_is_active(
    event: str, world: World, api: Api
) -> None:
    end, take_back = EVENTS[event]
    old, bystander = world.new_tokens(), token_of(world.other)
    assert asked(old, api) == ACTIVE
    end(world)
    ended = left_by(event)
    assert asked(old, api) == ended
    assert not is_ended(bystander)
    if take_back:
        take_back(world)
        assert asked(old, api) == ended
        new = world.new_tokens()
        assert (asked(old, api), asked(new, api)) == (ended, ACTIVE)
        assert reference_of(new["acting"]) != reference_of(old["acting"])
        if event in SWITCHES:  # for an instant, before any node has looked
            end(world)
            take_back(world)
            assert (asked(new, api), asked(world.new_tokens(), api)) == (ended, ACTIVE)
            assert not is_ended(bystander)


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_ends_tokens_that_may_do_more(name: str, world: World, api: Api) -> None:
    old = world.new_tokens()
    limit(SUBMIT, VIEW, "documents:cancel")(world)
    assert asked(old, api)["acting"] == {True}, "it allows all that the token carries"
    LIMITS[name](world)
    assert asked(old, api) == NONE


def test_only_on_behalf_ends_tokens_for_the_own_taxpayer_and_no_other(
    world: World, api: Api
) -> None:
    old = world.new_tokens()
    users(only_on_behalf=True)(world)
    assert asked(old, api) == ACTIVE | {"own": {False}, "registry": {False}}


def test_a_narrower_token_never_shares_an_ended_index(world: World) -> None:
    """Nor one that is about to end: no node has looked since the limit was set."""
    limit(VIEW)(world)
    tin = str(world.permission.taxpayer.identifier)
    narrow = token_of(world.erp, scope="InvoicingAPI", on_behalf_of=tin)
    limit()(world)
    wide = world.new_tokens()["acting"]
    limit(VIEW)(world)
    again = token_of(world.erp, scope="InvoicingAPI", on_behalf_of=tin)
    assert (is_ended(wide), is_ended(again)) == (True, False)
    assert reference_of(again) != reference_of(wide) == reference_of(narrow)


def test_other_changes_end_no_token(world: World, api: Api) -> None:
    old = world.new_tokens()
    issue_secret(reason="a test", system_user=world.user, **by(OPERATOR))
    make.permission(intermediary=world.erp.role)
    make.permission(
        taxpayer=world.permission.taxpayer, intermediary=world.erp.role, codes=["documents:cancel"]
    )
    users(expires_at=now() + DAY, logins_per_minute=99)(world)
    secrets(allowed_networks="192.0.2.0/24")(world)
    assert asked(old, api) == ACTIVE
    assert body_of(api.introspect(old["acting"]))["permissions"] == [SUBMIT, VIEW]
