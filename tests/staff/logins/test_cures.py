"""The tasks that cure a refused login: one table, filled in, for those who may do them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib import admin
from django.utils import timezone

from identity.staff.framework.records import RecordAdmin
from identity.staff.logins.refused.cures import CURES, offered_cures
from identity.staff.logins.refused.involved import Involved
from taxpayers.models import Credential, GrantedPermission, SystemUser, Taxpayer
from taxpayers.rules import RegistryReason
from taxpayers.services import Author, extend_system_user
from tests.client_auth.key_erp import KeyErp, new_key_erp, new_pair
from tests.support.erp import Erp, new_erp
from tests.support.factories import (
    CredentialFactory,
    GrantedPermissionFactory,
    IntermediaryFactory,
    SystemUserFactory,
    TaxpayerFactory,
)
from tests.support.staff import opened, page_url, staff_client, task_url, text_of
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS

DAY = timedelta(days=1)
REASON = {"reason": "asked by the taxpayer"}


def test_no_reason_is_forgotten() -> None:
    assert set(CURES) == set(REFUSALS)


def test_whatever_the_tax_authority_or_the_taxpayer_can_fix_has_a_task() -> None:
    for reason, refusal in REFUSALS.items():
        if refusal.fixed_by in ("The tax authority", "The represented taxpayer"):
            assert CURES[reason], reason
    assert CURES[RegistryReason.SECRET_EXPIRED]


def event_of(response: Any) -> LoginEvent:
    event = LoginEvent.objects.get(pk=response["correlationId"])
    assert event.reason
    return event


def _of_key(erp: KeyErp) -> Any:
    return erp.login(erp.assertion(pair=new_pair()))


@dataclass
class Case:
    """A login that is refused, and the tasks that the page offers, with who may do them."""

    refused: Callable[[], Any]
    role: str
    tasks: dict[str, dict[str, list[str]]]  # the name of each task, and the values in its form


def _erp(**user: Any) -> Erp:
    return new_erp(**user)


def _agent(**role: Any) -> Erp:
    return new_erp(taxpayer=IntermediaryFactory.create(**role).taxpayer)


def _blocked() -> Any:
    at = timezone.now()
    return _erp(blocked_at=at, blocked_by="kumar", blocked_reason="leaked").login()


def _no_permission(represented: str) -> Any:
    return _agent().login(on_behalf_of=represented)


def _unknown_represented() -> Any:
    return _no_permission("C8888888888")


def _inactive_represented() -> Any:
    TaxpayerFactory.create(tin="C8888888888", is_active=False)
    return _no_permission("C8888888888")


def _without_permission() -> Any:
    TaxpayerFactory.create(tin="C8888888888")
    return _no_permission("C8888888888")


def _permission(**values: Any) -> Any:
    agent = _agent()
    granted = GrantedPermissionFactory.create(
        intermediary=agent.role, taxpayer__tin="C8888888888", **values
    )
    return agent.login(on_behalf_of=str(granted.taxpayer.identifier))


def _secret(**values: Any) -> Any:
    secret: Any = CredentialFactory.create(**values)
    return Erp(secret.system_user.client_id, secret.clear, secret.system_user).login()


NOW = timezone.now
PAIR = {"taxpayer": ["C8888888888"], "codes": ["documents:submit", "documents:view"]}
CASES = {
    "blocked": Case(_blocked, "security officer", {"unblock_system_user": {}}),
    "expired": Case(
        lambda: _erp(expires_at=NOW() - DAY).login(),
        "security officer",
        {"extend_system_user": {}},
    ),
    "tokens must be bound to a key": Case(
        lambda: _erp(token_binding="dpop").login(), "security officer", {"bind_tokens": {}}
    ),
    "tokens must be bound to a certificate": Case(
        lambda: _erp(token_binding="tls").login(), "security officer", {"bind_tokens": {}}
    ),
    "secret expired": Case(
        lambda: _secret(created_at=NOW() - 2 * DAY, expires_at=NOW() - DAY),
        "security officer",
        {"rotate_secret": {}},
    ),
    "secret revoked": Case(
        lambda: _secret(slot=None, revoked_at=NOW()), "security officer", {"rotate_secret": {}}
    ),
    "wrong secret": Case(
        lambda: _erp().login(client_secret=new_erp().client_secret),
        "security officer",
        {"rotate_secret": {}},
    ),
    "wrong key": Case(
        lambda: _of_key(new_key_erp()), "security officer", {"register_client_key": {}}
    ),
    "unknown client": Case(
        lambda: _erp().login(client_id="ci_test_" + "0" * 32), "security officer", {}
    ),
    "no scope left": Case(
        lambda: _erp(scopes="").login(), "security officer", {"change_system_user": {}}
    ),
    "unknown scope": Case(lambda: _erp().login(scope="nonsense"), "security officer", {}),
    "taxpayer not active": Case(
        lambda: _erp(taxpayer=TaxpayerFactory.create(is_active=False)).login(),
        "registrar",
        {"activate_taxpayer": {}},
    ),
    "not an intermediary": Case(
        lambda: _erp(taxpayer=TaxpayerFactory.create(tin="C7777777777")).login(
            on_behalf_of="C8888888888"
        ),
        "registrar",
        {"register_intermediary": {"taxpayer": ["C7777777777"]}},
    ),
    "intermediary not active": Case(
        lambda: _agent(is_active=False).login(on_behalf_of="C8888888888"),
        "registrar",
        {"change_intermediary": {}},
    ),
    "represented unknown": Case(
        _unknown_represented, "registrar", {"register_taxpayer": {"identifier": ["C8888888888"]}}
    ),
    "represented not active": Case(
        _inactive_represented,
        "registrar",
        {"activate_taxpayer": {}, "grant_permission": {"taxpayer": ["C8888888888"]}},
    ),
    "no permission": Case(
        _without_permission, "registrar", {"grant_permission": {"taxpayer": ["C8888888888"]}}
    ),
    "permission expired": Case(
        lambda: _permission(valid_from=NOW() - 2 * DAY, valid_until=NOW() - DAY),
        "registrar",
        {"grant_permission": PAIR},
    ),
    "permission revoked": Case(
        lambda: _permission(revoked_at=NOW()), "registrar", {"grant_permission": PAIR}
    ),
    "permission not yet valid": Case(
        lambda: _permission(valid_from=NOW() + DAY), "registrar", {"grant_permission": PAIR}
    ),
    "missing parameter": Case(lambda: _erp().login(grant_type=None), "security officer", {}),
}


@pytest.mark.django_db
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_tasks_that_cure_it_are_offered_to_those_who_may(case: Case) -> None:
    event = event_of(case.refused())
    officer = staff_client(case.role)
    buttons = officer.get(page_url(event)).context["answer"].cures.buttons
    offered = {}
    for button in buttons:
        url = urlsplit(button.url)
        offered[url.path.rstrip("/").rpartition("/")[2]] = parse_qs(url.query)
        assert officer.get(button.url).status_code == 200
    for task, values in case.tasks.items():
        assert values.items() <= offered[task].items(), task
    assert offered.keys() == case.tasks.keys()


@pytest.mark.django_db
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nobody_else_is_offered_them_but_reads_who_may(case: Case) -> None:
    event = event_of(case.refused())
    page = staff_client("viewer").get(page_url(event))
    cures = page.context["answer"].cures
    assert cures.buttons == []
    assert len(cures.for_others) == len(case.tasks)
    assert all(case.role in roles for _task, roles in cures.for_others)
    if case.tasks:
        assert f"({case.role})" in text_of(page)


@pytest.mark.django_db
def test_every_task_of_the_table_exists() -> None:
    taxpayer = IntermediaryFactory.create().taxpayer
    secret = CredentialFactory.create(system_user__taxpayer=taxpayer)
    full = Involved(
        LoginEvent(subject="C2", actor="C1"),
        secret,
        secret.system_user,
        taxpayer.intermediary,
        TaxpayerFactory.create(is_active=False),
        GrantedPermissionFactory.create(),
    )
    bare = Involved(LoginEvent(subject="C2", actor="C1"))
    with_key = Involved(LoginEvent(), system_user=new_key_erp().system_user)
    user = SystemUserFactory.create(token_endpoint_auth_method="tls_client_auth")
    with_certificate = Involved(LoginEvent(), system_user=user)
    seen = set()
    for cures in CURES.values():
        for cure in cures:
            others = (full, bare, with_key, with_certificate)
            target = next((found for one in others if (found := cure.target(one))), None)
            assert target is not None
            pages = admin.site.get_model_admin(target.model)
            assert isinstance(pages, RecordAdmin)
            assert cure.task in {task.name for task in pages.get_tasks()}
            seen.add(cure.task)
    assert len(seen) == 14


@pytest.mark.django_db
def test_a_task_that_is_not_possible_now_says_why() -> None:
    erp = new_erp()
    CredentialFactory.create(system_user=erp.system_user, slot=2)
    event = event_of(erp.login(client_secret=new_erp().client_secret))
    page = staff_client("security officer").get(page_url(event))
    assert page.context["answer"].cures.buttons == []
    assert "There are already two secrets." in text_of(page)


@pytest.mark.django_db
def test_a_permission_is_granted_again_with_the_codes_that_it_had() -> None:
    event = event_of(_permission(revoked_at=NOW(), codes=["documents:view"]))
    registrar = staff_client("registrar")
    (button,) = registrar.get(page_url(event)).context["answer"].cures.buttons
    form = registrar.get(button.url).context["form"]
    assert form["codes"].value() == ["documents:view"]
    values = {name: form[name].value() or "" for name in form.fields}
    assert registrar.post(button.url, values).status_code == 302
    assert GrantedPermission.objects.filter(revoked_at=None).count() == 1
    assert "Fixed since then. The same login would get a token now." in text_of(
        registrar.get(page_url(event))
    )


@pytest.mark.django_db
def test_a_reason_of_a_later_version_is_no_error(rf: Any) -> None:
    involved = Involved(LoginEvent(reason="of_the_future"))
    assert not offered_cures(rf.get("/"), "of_the_future", involved, NOW())


@pytest.mark.django_db
def test_the_task_cures_the_login_and_the_page_says_so() -> None:
    erp = _erp(blocked_at=NOW(), blocked_by="kumar", blocked_reason="leaked")
    extend_system_user(
        system_user=erp.system_user,
        expires_at=NOW() + DAY,
        reason="asked",
        by=Author("x"),
        at=NOW(),
    )
    event = event_of(erp.login())
    officer = staff_client("security officer", "ravi")
    before = text_of(officer.get(page_url(event)))
    assert "The same login would be refused again now." in before
    assert "Reason: leaked" in before
    assert "Changed the last day" not in before  # that was before the login
    officer.post(task_url(erp.system_user, "unblock_system_user"), REASON)
    page = officer.get(page_url(event))
    after = text_of(page)
    assert "Fixed since then. The same login would get a token now." in after
    assert "Unblocked the system user" in after
    assert "by ravi · Reason: asked by the taxpayer" in after
    assert not page.context["answer"].cures
    erp.login()
    assert "Its latest token was issued" in text_of(officer.get(page_url(event)))


@pytest.mark.django_db
@pytest.mark.parametrize("binding", ["dpop", "tls"])
def test_a_client_that_cannot_prove_its_binding_is_not_fixed_before_the_binding_ends(
    binding: str,
) -> None:
    erp = _erp(token_binding=binding)
    event = event_of(erp.login())
    officer = staff_client("security officer", "ravi")
    before = text_of(officer.get(page_url(event)))
    assert "The same login would be refused again now." in before
    assert "Fixed since then." not in before
    url = task_url(erp.system_user, "bind_tokens")
    officer.post(url, opened(officer, url) | REASON | {"token_binding": ""})
    after = officer.get(page_url(event))
    assert "Fixed since then. The same login would get a token now." in text_of(after)
    assert erp.login().status_code == 200


@pytest.mark.django_db
def test_another_reason_that_holds_now_is_named_with_its_own_tasks() -> None:
    erp = _erp(blocked_at=NOW(), blocked_by="kumar", blocked_reason="leaked")
    event = event_of(erp.login())
    SystemUser.objects.update(blocked_at=None, blocked_by="", blocked_reason="")
    Taxpayer.objects.update(is_active=False)
    page = staff_client("registrar").get(page_url(event))
    assert "Now it would be refused for another reason: Taxpayer not active." in text_of(page)
    (button,) = page.context["answer"].cures.buttons
    assert "activate_taxpayer" in button.url


@pytest.mark.django_db
@pytest.mark.parametrize("form", [{"grant_type": "x"}, {"scope": "nonsense"}])
def test_a_fault_of_the_request_is_fixed_when_a_later_login_got_a_token(
    form: dict[str, str],
) -> None:
    erp = _erp()
    erp.login()
    event = event_of(erp.login(**form))
    viewer = staff_client("viewer")
    assert "Fixed since then." not in text_of(viewer.get(page_url(event)))
    new_erp().login()  # another client
    assert "Fixed since then." not in text_of(viewer.get(page_url(event)))
    erp.login()
    page = text_of(viewer.get(page_url(event)))
    assert "Fixed since then. Its latest token was issued" in page


@pytest.mark.django_db
def test_a_secret_that_expired_is_not_fixed_by_another_one_that_nobody_uses() -> None:
    event = event_of(_secret(created_at=NOW() - 2 * DAY, expires_at=NOW() - DAY))
    Credential.objects.update(slot=None)
    CredentialFactory.create(system_user_id=event.system_user_id)
    assert "Fixed since then." not in text_of(staff_client("viewer").get(page_url(event)))


@pytest.mark.django_db
def test_who_may_not_see_the_history_sees_no_change_of_it() -> None:
    erp = _erp(blocked_at=NOW(), blocked_by="kumar", blocked_reason="leaked")
    event = event_of(erp.login())
    staff_client("security officer", "ravi").post(
        task_url(erp.system_user, "unblock_system_user"), REASON
    )
    page = text_of(staff_client("viewer").get(page_url(event)))
    assert "Fixed since then." in page
    assert "ravi" not in page
