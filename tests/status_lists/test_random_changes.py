"""Random changes and logins: a bit is set if and only if a token of its index was ever inactive.

Introspection is the oracle: it decides about each token for itself, from its login event.
"""

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from django.conf import settings
from pytest_django.fixtures import Settings

from taxpayers.models import (
    Credential,
    GrantedPermission,
    Intermediary,
    PermissionCode,
    SystemUser,
    Taxpayer,
)
from tests.introspection.api import claims_of, revoke
from tests.status_lists.reader import bits_of, read_list, reference_of
from tests.support.answers import body_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import (
    SUBMIT,
    VIEW,
    GrantedPermissionFactory,
    IntermediaryFactory,
    TaxpayerFactory,
)
from tokens.access_tokens.status import ACTIVE, status_of
from tokens.access_tokens.verification import verify
from tokens.keys.signer import current_key_ring
from tokens.store import django_store as store
from tokens.store.token_query import token_query

pytestmark = pytest.mark.django_db

STEPS = 60
DAY = timedelta(days=1)
SCOPES = {
    name: {"description": name, "audience": name} for name in ("InvoicingAPI", "ReportingAPI")
}


class World:
    """Two intermediaries' clients, one of a plain taxpayer, and all tokens that they ever got."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)  # noqa: S311 - a run must be repeatable
        roles = [IntermediaryFactory.create() for _ in range(2)]
        owners = [role.taxpayer for role in roles]
        self.erps = [new_erp(taxpayer=owner, logins_per_minute=0) for owner in owners]
        self.erps.append(new_erp(logins_per_minute=0))
        self.taxpayers = [TaxpayerFactory.create() for _ in range(2)]
        for role in roles:
            for taxpayer in self.taxpayers:
                GrantedPermissionFactory.create(taxpayer=taxpayer, intermediary=role)
        self.tokens: list[tuple[Erp, str]] = []
        self.were_inactive: set[str] = set()

    def any(self, model: Any) -> Any:
        return self.rng.choice(list(model.objects.order_by("pk")))

    def log_in(self) -> None:
        erp = self.rng.choice(self.erps)
        tin = self.rng.choice([None, *(taxpayer.tin for taxpayer in self.taxpayers)])
        scope = self.rng.choice([None, "InvoicingAPI"])
        body = body_of(erp.login(on_behalf_of=tin, scope=scope))
        if "access_token" in body:
            self.tokens.append((erp, body["access_token"]))

    def revoke(self) -> None:
        if self.tokens:
            revoke(*self.rng.choice(self.tokens))

    def change(self) -> None:
        self.rng.choice(CHANGES)(self)

    def check(self) -> None:
        """The lists as they are now against what introspection answers now, and answered before."""
        ended = defaultdict(set)
        self.were_inactive |= {token for _erp, token in self.tokens if not is_active(token)}
        for _erp, token in self.tokens:
            ended[reference_of(token)].add(token in self.were_inactive)
        lists = {uri: bits_of(read_list(uri)) for uri, _idx in ended}
        for (uri, idx), inactive in ended.items():
            assert bool(lists[uri][idx // 8] >> idx % 8 & 1) == any(inactive), (uri, idx)


def is_active(token: str) -> bool:
    reading = store.perform(token_query(token))
    verified = verify(
        token,
        current_key_ring(reading.at),
        issuer=settings.AUTH_URL,
        audiences=set(SCOPES),
        at=reading.at,
    )
    known = tuple(settings.SCOPES)
    return status_of(verified, reading.token, known_scopes=known, at=reading.at) == ACTIVE


def now() -> datetime:
    return datetime.now(UTC)


def one_of(w: World, model: Any, row: Any = None, **values: Any) -> None:
    """Changes this row of the model, or any."""
    model.objects.filter(pk=(row or w.any(model)).pk).update(**values)


def block(w: World) -> None:
    at = w.rng.choice([None, now()])
    by, reason = ("officer", "abuse") if at else ("", "")
    one_of(w, SystemUser, blocked_at=at, blocked_by=by, blocked_reason=reason)


def expire(w: World) -> None:
    one_of(w, SystemUser, expires_at=w.rng.choice([None, now() - DAY, now() + DAY]))


def change_scopes(w: World) -> None:
    scopes = ["InvoicingAPI", "InvoicingAPI ReportingAPI", "ReportingAPI"]
    one_of(w, SystemUser, scopes=w.rng.choice(scopes))


def activate(w: World) -> None:
    model = w.rng.choice([Taxpayer, Intermediary])
    one_of(w, model, w.any(model), is_active=w.rng.random() < 0.6)


def end_secret(w: World) -> None:
    if w.rng.random() < 0.3:
        row, ends = w.any(Credential), w.rng.choice([now() - DAY, now() + DAY])
        one_of(w, Credential, row, created_at=now() - 9 * DAY, expires_at=ends)


def change_codes(w: World) -> None:
    permission: GrantedPermission = w.any(GrantedPermission)
    permission.codes.set(PermissionCode.objects.filter(pk__in=w.rng.sample([SUBMIT, VIEW], 1)))


def add_codes(w: World) -> None:
    w.any(GrantedPermission).codes.add(SUBMIT, VIEW)


def end_permission(w: World) -> None:
    until = w.rng.choice([None, now() - DAY, now() + DAY])
    one_of(w, GrantedPermission, valid_from=now() - 9 * DAY, valid_until=until)


CHANGES: tuple[Callable[[World], None], ...] = (
    *(block, expire, change_scopes, activate, end_secret),
    *(change_codes, add_codes, end_permission),
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_bit_is_set_if_and_only_if_a_token_of_its_index_was_inactive(
    seed: int, settings: Settings
) -> None:
    settings.SCOPES = SCOPES
    world = World(seed)
    for _ in range(STEPS):
        step = world.rng.choices(
            [world.log_in, world.revoke, world.change], cum_weights=[60, 63, 100]
        )[0]
        step()
        if step != world.log_in:
            world.check()
    assert len({claims_of(token)["sub"] for _erp, token in world.tokens}) >= 3
    assert len(world.were_inactive) > 2
    assert {is_active(token) for _erp, token in world.tokens} == {True, False}
