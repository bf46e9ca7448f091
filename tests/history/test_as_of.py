"""*As of* a moment the facts, and so the decision, are those of that moment (contract 4)."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace
from pytest_django import Settings

from taxpayers.facts.query import load_facts
from taxpayers.facts.values import Facts, FactsQuery
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import (
    Change,
    Credential,
    GrantedPermission,
    Intermediary,
    SystemUser,
    Taxpayer,
)
from taxpayers.rules import AuthorizationRequest, Refused, decide, required_confirmation
from taxpayers.services import Author, block_system_user, unblock_system_user
from taxpayers.standing.as_of import CHANGING, history_begins_at, rows_as_of, system_users_as_of
from taxpayers.standing.past_clients import (
    clients_as_of,
    decide_as_of,
    pairs_as_of,
    represented_facts,
)
from tests.facts.registry_changes import World
from tests.history.random_changes import CHANGES, SCOPES, TAXPAYERS, Registrar
from tests.registry.test_services_history import CASES, Case
from tests.support.factories import CredentialFactory, SystemUserFactory

pytestmark = pytest.mark.django_db
BEGIN = datetime(2026, 1, 5, 1, 2, 3, 4, tzinfo=UTC)
DAY, INSTANT = timedelta(days=1), timedelta(microseconds=1)
STEPS, COMBINATIONS = 40, 8
KNOWN = tuple(SCOPES)

# What is asked: the secret of a system user, and the taxpayer that its login names.
Asked = tuple[int, TaxpayerId | None]


def outcome(facts: Facts, at: datetime) -> Any:
    """The decision in a form that can be compared."""
    proved = required_confirmation(facts)
    try:
        return decide(AuthorizationRequest(facts, None, KNOWN, at, proved))
    except Refused as refused:
        return refused.args


def in_order(facts: Facts) -> Facts:
    """Without the epoch, which is for logins, and with the permissions in one order."""
    represented = facts.represented
    if represented is not None:
        permissions = (
            replace(one, codes=tuple(sorted(one.codes))) for one in represented.permissions
        )
        represented = replace(represented, permissions=tuple(sorted(permissions, key=repr)))
    return replace(facts, epoch=0, represented=represented)


def present_facts(rng: Random) -> dict[Asked, Facts]:
    """What logins read now, for some of the secrets and taxpayers."""
    secrets = list(Credential.objects.select_related("system_user").order_by("pk"))
    asked = [(secret, name) for secret in secrets for name in (None, *TAXPAYERS)]
    found = {}
    for secret, name in rng.sample(asked, min(len(asked), COMBINATIONS)):
        query = FactsQuery(secret.system_user.client_id, secret.lookup, name)
        facts = load_facts(query).facts
        assert facts is not None
        found[secret.pk, name] = in_order(facts)
    return found


# Every value that a service changes, and what the pages show beside the facts.
VALUES: dict[type[Model], tuple[str, ...]] = {
    Taxpayer: ("name", "is_active"),
    Intermediary: ("is_active", "active_until"),
    GrantedPermission: ("valid_from", "valid_until", "revoked_at"),
    SystemUser: (
        *("name", "scopes", "logins_per_minute", "expires_at"),
        *("blocked_at", "blocked_by", "blocked_reason", "token_binding"),
        *("allowed_permissions", "allowed_taxpayers", "only_on_behalf"),
    ),
    Credential: ("expires_at", "revoked_at", "allowed_networks"),
}


def values_of(rows: Iterable[Model]) -> list[Any]:
    return sorted((row.pk, [getattr(row, name) for name in VALUES[type(row)]]) for row in rows)


class Past:
    """The registry as of the moment."""

    def __init__(self, at: datetime) -> None:
        self.taxpayers = {row.identifier: row for row in rows_as_of(Taxpayer.objects.all(), at)}
        pairs = pairs_as_of(GrantedPermission.objects.prefetch_related("codes"), at)
        self.pairs = {
            (pair.intermediary.taxpayer.identifier, pair.taxpayer.identifier): pair.permissions
            for pair in pairs
        }
        self.clients = clients_as_of(SystemUser.objects.all(), at)
        self.secrets = {
            secret.pk: (client, secret) for client in self.clients for secret in client.credentials
        }

    def facts(self, asked: Asked) -> Facts:
        """What a login read then, in the same order as `present_facts`."""
        key, name = asked
        client, secret = self.secrets[key]
        if name is None:
            return in_order(client.facts(secret, None))
        permissions = self.pairs.get((client.user.taxpayer.identifier, name), [])
        represented = represented_facts(name, self.taxpayers.get(name), permissions)
        return in_order(client.facts(secret, represented))

    def values(self, at: datetime) -> list[Any]:
        return [
            values_of(self.taxpayers.values()),
            values_of(rows_as_of(Intermediary.objects.all(), at)),
            values_of(row for permissions in self.pairs.values() for row in permissions),
            values_of(client.user for client in self.clients),
            values_of(secret for _client, secret in self.secrets.values()),
        ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_the_facts_of_every_moment_are_those_that_logins_read_then(
    seed: int, settings: Settings
) -> None:
    settings.SCOPES = SCOPES
    rng = Random(seed)  # noqa: S311 - repeats the same changes
    registrar = Registrar(rng, BEGIN)
    facts: dict[datetime, dict[Asked, Facts]] = {}
    values: dict[datetime, list[Any]] = {}
    while len(facts) < STEPS:
        if registrar.change():
            facts[registrar.at] = present_facts(rng)
            values[registrar.at] = [values_of(model._default_manager.all()) for model in VALUES]
    moments = sorted(facts)
    assert history_begins_at() == moments[0]
    for moment, following in zip(moments, [*moments[1:], moments[-1] + 9 * DAY], strict=True):
        for at in (moment, following - INSTANT):  # nothing changes in between but the clock
            past = Past(at)
            for asked, expected in facts[moment].items():
                assert past.facts(asked) == expected, (at, asked)
                assert outcome(past.facts(asked), at) == outcome(expected, at)
            assert past.values(at) == values[moment]


@pytest.mark.slow
def test_the_random_changes_make_every_kind_of_change(settings: Settings) -> None:
    settings.SCOPES = SCOPES
    registrar = Registrar(Random(1), BEGIN)  # noqa: S311 - repeats the same changes
    for _ in range(400):
        registrar.change()
    assert registrar.made == set(CHANGES)


# What a change of a record stores that is not undone: a row keeps it for good, or has it elsewhere.
NOT_UNDONE = {
    *("revoked_at", "secret", "credential", "secret_expires_at", "secret_revoked_at"),
    "allowed_networks",
}


@pytest.mark.parametrize("case", CASES, ids=[case.service for case in CASES])
def test_every_field_that_a_service_changes_is_undone(case: Case) -> None:
    fields = {str(model._meta.model_name): set(names) for model, names in CHANGING.items()}
    fields["permissioncode"] = {"description"}  # decides nothing
    assert set(case.before) <= fields[case.about[0]] | NOT_UNDONE


def test_before_its_first_moment_a_record_was_not_there() -> None:
    registrar = Registrar(Random(2), BEGIN)  # noqa: S311 - repeats the same changes
    while not GrantedPermission.objects.exists() or not SystemUser.objects.exists():
        registrar.change()
    before = BEGIN - DAY
    assert rows_as_of(Taxpayer.objects.all(), before) == []
    assert pairs_as_of(GrantedPermission.objects.all(), before) == []
    assert clients_as_of(SystemUser.objects.all(), before) == []


def test_changes_count_in_the_order_in_which_they_took_effect() -> None:
    """Two people change one record at once: whose moment is earlier may get the lock later."""
    user = SystemUserFactory.create()
    block_system_user(system_user=user, reason="one", by=Author("a"), at=BEGIN + 2 * INSTANT)
    unblock_system_user(system_user=user, reason="two", by=Author("b"), at=BEGIN + INSTANT)
    SystemUser.objects.update(created=BEGIN - DAY)
    (before,) = system_users_as_of(SystemUser.objects.all(), BEGIN)
    assert before.blocked_at is None
    (after,) = system_users_as_of(SystemUser.objects.all(), BEGIN + 2 * INSTANT)
    assert after.blocked_at is None


def test_a_login_is_decided_with_the_secret_that_had_the_best_chance() -> None:
    world = World()
    at = datetime.now(UTC)
    (client,) = clients_as_of([world.user], at)
    later = at + 9 * 365 * DAY  # of one that was revoked, so it is no chance
    CredentialFactory.create(
        system_user=world.user, slot=None, revoked_at=at - DAY / 2, expires_at=later
    )
    (client,) = clients_as_of([world.user], at)
    assert client.best_credential() == world.user.credentials.get(slot=1)
    token = decide_as_of(client, None, KNOWN, at)
    assert token is not None
    assert token.subject == world.taxpayer.identifier
    world.user.credentials.update(revoked_at=at - DAY, slot=None)
    (client,) = clients_as_of([world.user], at)
    with pytest.raises(Refused, match="secret_revoked"):
        decide_as_of(client, None, KNOWN, at)
    SystemUser.objects.update(created=BEGIN)
    Taxpayer.objects.update(created_at=BEGIN)
    (client,) = clients_as_of(SystemUser.objects.all(), at - 2 * DAY)
    assert decide_as_of(client, None, KNOWN, at) is None  # it had no secret yet


@pytest.mark.parametrize("changes", [2, 2_000])
def test_a_long_history_takes_as_many_queries_as_a_short_one(changes: int) -> None:
    world = World()
    row = {"object_type": "systemuser", "object_id": str(world.user.pk), "by": "a", "action": "x"}
    later = [
        Change(**row, at=BEGIN + number * INSTANT, before={"blocked_at": None})
        for number in range(changes)
    ]
    Change.objects.bulk_create(later)
    Taxpayer.objects.update(created_at=BEGIN)
    with CaptureQueriesContext(connection) as queries:
        (client,) = clients_as_of(SystemUser.objects.all(), BEGIN)
    assert client.user.blocked_at is None
    assert len(queries) <= 11, [query["sql"] for query in queries]
