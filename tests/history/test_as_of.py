"""*As of* a moment the facts, and so the decision, are those of that moment (contract 4)."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from msgspec.structs import replace
from pytest_django import Settings

from identity.staff.history import as_of_answers
from taxpayers import services
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
from tests.history.random_changes import SCOPES, TAXPAYERS, Registrar
from tests.registry.test_services_history import CASES, Case
from tests.support import make
from tests.support.erp import new_erp
from tests.support.factories import SUBMIT, VIEW
from tests.support.staff import page_url, text_of

pytestmark = pytest.mark.django_db
BEGIN = datetime(2026, 1, 5, 1, 2, 3, 4, tzinfo=UTC)
DAY, INSTANT = timedelta(days=1), timedelta(microseconds=1)
STEPS, COMBINATIONS = 40, 8
KNOWN = tuple(SCOPES)

# What is asked: the secret of a system user, and the taxpayer that its login names.
Asked = tuple[int, TaxpayerId | None]


def outcome(facts: Facts, at: datetime) -> Any:
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


# What a change of a record stores that is not undone: a row keeps it for good, or has it elsewhere.
NOT_UNDONE = {
    *("revoked_at", "secret", "credential", "secret_expires_at", "secret_revoked_at"),
    "allowed_networks",
}


@pytest.mark.parametrize("case", CASES, ids=str)
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
    user = make.system_user()
    block_system_user(system_user=user, reason="one", by=Author("a"), at=BEGIN + 2 * INSTANT)
    unblock_system_user(system_user=user, reason="two", by=Author("b"), at=BEGIN + INSTANT)
    SystemUser.objects.update(created=BEGIN - DAY)
    (before,) = system_users_as_of(SystemUser.objects.all(), BEGIN)
    assert before.blocked_at is None
    (after,) = system_users_as_of(SystemUser.objects.all(), BEGIN + 2 * INSTANT)
    assert after.blocked_at is None


def test_a_login_is_decided_with_the_secret_that_had_the_best_chance() -> None:
    erp, at = new_erp(), datetime.now(UTC)
    user = erp.system_user
    (client,) = clients_as_of([user], at)
    later = at + 9 * 365 * DAY  # of one that was revoked, so it is no chance
    make.credential(system_user=user, slot=None, revoked_at=at - DAY / 2, expires_at=later)
    (client,) = clients_as_of([user], at)
    assert client.best_credential() == user.credentials.get(slot=1)
    token = decide_as_of(client, None, KNOWN, at)
    assert str(token and token.subject) == erp.tin
    user.credentials.update(revoked_at=at - DAY, slot=None)
    (client,) = clients_as_of([user], at)
    with pytest.raises(Refused, match="secret_revoked"):
        decide_as_of(client, None, KNOWN, at)
    SystemUser.objects.update(created=BEGIN)
    Taxpayer.objects.update(created_at=BEGIN)
    (client,) = clients_as_of(SystemUser.objects.all(), at - 2 * DAY)
    assert decide_as_of(client, None, KNOWN, at) is None  # it had no secret yet


def test_a_long_history_takes_as_many_queries_as_a_short_one() -> None:
    user = make.system_user()
    row = {"object_type": "systemuser", "object_id": str(user.pk), "by": "a", "action": "x"}
    later = [
        Change(**row, at=BEGIN + number * INSTANT, before={"blocked_at": None})
        for number in range(2_000)
    ]
    Change.objects.bulk_create(later)
    Taxpayer.objects.update(created_at=BEGIN)
    with CaptureQueriesContext(connection) as queries:
        (client,) = clients_as_of(SystemUser.objects.all(), BEGIN)
    assert client.user.blocked_at is None
    assert len(queries) <= 11, [query["sql"] for query in queries]


AS_OF = reverse("admin:taxpayers_change_as_of")
# Noon of 1 March in Kuala Lumpur.
MARCH = datetime(2026, 3, 1, 4, 0, tzinfo=UTC)
TIN, AGENT = "C1000000001", "C2000000002"


def by(days: float = 0, name: str = "aminah") -> dict[str, Any]:
    """Who makes a change, so many days after noon of 1 March."""
    return {"by": Author(name, "192.0.2.7"), "at": MARCH + days * DAY}


class Story:
    """A taxpayer grants an intermediary two codes on 1 March, and revokes them on 11 March."""

    def __init__(self) -> None:
        self.taxpayer = services.register_taxpayer(
            taxpayer=TaxpayerId(TIN), name="Old Name", **by(-20)
        )
        agent = services.register_taxpayer(taxpayer=TaxpayerId(AGENT), name="Agent", **by(-20))
        self.role = services.register_intermediary(taxpayer=agent, **by(-10))
        self.issued = services.register_system_user(
            reason="a test", taxpayer=agent, name="Hub", **by(-9)
        )
        self.permission = services.grant_permission(
            taxpayer=self.taxpayer, intermediary=self.role, codes=[SUBMIT, VIEW], **by()
        )
        services.revoke_permission(
            permission=self.permission, reason="The contract ended", **by(10, "kumar")
        )
        services.rename_taxpayer(taxpayer=self.taxpayer, name="New Name", reason="merger", **by(12))
        services.block_system_user(system_user=self.user, reason="leaked", **by(15))
        services.unblock_system_user(system_user=self.user, reason="replaced", **by(20))

    @property
    def user(self) -> SystemUser:
        return self.issued.system_user


@pytest.fixture
def story(db: None) -> Story:
    return Story()


def ask(client: Client, about: str, day: str, time: str = "") -> Any:
    return client.get(AS_OF, {"about": about, "day": day, "time": time})


def line_of(response: Any) -> Any:
    """The only intermediary or taxpayer in the answer."""
    context = response.context
    pairs = (
        context["taxpayer"]["acting"]
        if "taxpayer" in context
        else context["system_user"]["represented"]
    )
    (line,) = pairs.lines
    return line


def test_who_could_act_for_a_taxpayer_at_a_moment(story: Story, auditor: Client) -> None:
    page = text_of(ask(auditor, TIN, "2026-03-01", "11:59"))  # a minute before the permission
    assert "It had not granted any permissions by this moment." in page
    for day, time, codes, why_not in (
        ("2026-03-01", "12:00", (SUBMIT, VIEW), ""),
        ("2026-03-01", "", (SUBMIT, VIEW), ""),  # the end of the day
        ("2026-03-11", "11:59", (SUBMIT, VIEW), ""),
        ("2026-03-11", "12:00", (), "Permission revoked"),
        ("2026-03-17", "", (), "System user blocked"),
        ("2026-03-22", "", (), "Permission revoked"),
    ):
        response = ask(auditor, TIN, day, time)
        page, line = text_of(response), line_of(response)
        authorization = line.outcome.authorization
        assert (authorization.permissions if authorization else ()) == codes, (day, time)
        assert line.outcome.text == why_not
        assert f"Agent (C2000000002) {'No' if why_not else 'Yes'} {why_not}" in page
        assert ", ".join(codes) in page


def test_the_same_is_shown_from_the_side_of_the_system_user(story: Story, auditor: Client) -> None:
    response = ask(auditor, story.user.client_id, "2026-03-05")
    assert line_of(response).outcome.authorization.permissions == (SUBMIT, VIEW)
    page = text_of(response)
    assert f"It could get a token for its own taxpayer {AGENT}, with InvoicingAPI." in page
    assert "Old Name (C1000000001)" in page  # as it was called then
    assert str(story.issued.secret) in page
    blocked = text_of(ask(auditor, story.user.client_id, "2026-03-17"))
    assert "It could not log in" in blocked
    assert "by aminah · leaked" in blocked
    assert "Old Name ·" in text_of(ask(auditor, TIN, "2026-03-05"))
    assert "New Name ·" in text_of(ask(auditor, TIN, "2026-03-15"))


def test_what_is_asked_from_a_record_and_what_the_history_cannot_know(
    story: Story, auditor: Client, viewer: Client
) -> None:
    page = text_of(ask(auditor, TIN, "2025-01-01"))
    assert "Not known: the history begins on 9 Feb 2026, 12:00 ." in page
    services.register_taxpayer(taxpayer=TaxpayerId("C3000000003"), name="Later", **by(30))
    user = services.register_system_user(
        reason="a test", taxpayer=story.taxpayer, name="Till", **by(30)
    ).system_user
    for about in ("C3000000003", user.client_id):
        page = text_of(ask(auditor, about, "2026-03-05"))
        assert "It was not registered at this moment." in page
    answer = ask(auditor, TIN, f"{timezone.localdate()}")  # today without a time
    assert abs(answer.context["moment"] - timezone.now()) < timedelta(minutes=5)
    form = auditor.get(AS_OF, {"about": TIN}).context["form"]
    assert form.initial == {"about": TIN, "day": timezone.localdate()}
    links = {story.taxpayer: TIN, story.role: AGENT, story.user: story.user.client_id}
    for record, about in links.items():
        assert f"{AS_OF}?about={about}" in auditor.get(page_url(record)).content.decode()
        assert AS_OF not in viewer.get(page_url(record)).content.decode()
    Change.objects.all().delete()
    assert "the history has no records" in text_of(ask(auditor, TIN, "2026-03-05"))


def test_a_wrong_question_shows_the_error_in_the_form(story: Story, auditor: Client) -> None:
    for form, error in (
        ({"about": "", "day": "2026-03-01"}, "required"),
        ({"about": TIN, "day": ""}, "required"),
        ({"about": TIN, "day": "2999-01-01"}, "Choose a moment of the past."),
        ({"about": TIN, "day": "0001-01-01", "time": "00:00"}, "valid date"),
        ({"about": "C9999999999", "day": "2026-03-01"}, "There is no taxpayer C9999999999."),
        ({"about": "ci_test_x", "day": "2026-03-01"}, "There is no system user"),
        ({"about": "ci_\0", "day": "2026-03-01"}, "Null characters"),
        ({"about": "?", "day": "2026-03-01"}, "is not a valid identifier: the TIN must be"),
        ({"about": TIN, "day": "2026-03-01", "time": "25:00"}, "valid time"),
    ):
        response = auditor.get(AS_OF, form)
        assert error in str(response.context["form"].errors), form
        assert "answer-title" not in response.content.decode()


def test_an_intermediary_with_many_taxpayers_has_pages(
    story: Story, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(as_of_answers, "PAGE_SIZE", 2)
    for number in range(4):
        row = services.register_taxpayer(
            taxpayer=TaxpayerId(f"C500000000{number}"), name="x", **by(1)
        )
        services.grant_permission(taxpayer=row, intermediary=story.role, codes=[VIEW], **by(1))
    found: list[str] = []
    url = f"{AS_OF}?about={story.user.client_id}&day=2026-03-05&time="
    while url:
        response = auditor.get(url)
        lines = response.context["system_user"]["represented"].lines
        found += [line.pair.taxpayer.tin for line in lines]
        following = response.context["next_url"]
        url = f"{AS_OF}{following}" if following else ""
    assert found == [TIN, *(f"C500000000{number}" for number in range(4))]
    last_page = auditor.get(f"{AS_OF}?about={story.user.client_id}&day=2026-03-05&p=3")
    assert last_page.context["previous_url"].endswith("p=2")
    for page in ("0", "-1", "x", "99999999999999999999", ""):
        form = {"about": story.user.client_id, "day": "2026-03-05", "p": page}
        assert auditor.get(AS_OF, form).context["system_user"]["represented"].page == 1
