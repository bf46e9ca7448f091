"""The tasks that cure a refused login: one table, filled in, for those who may do them."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from identity.staff.logins.refused.cures import offered_cures
from identity.staff.logins.refused.involved import Involved
from taxpayers.models import Credential, SystemUser, Taxpayer
from taxpayers.services import extend_system_user
from tests.client_auth.key_erp import new_key_erp, new_pair
from tests.support import make
from tests.support.erp import Erp, event_of, new_erp
from tests.support.moments import why
from tests.support.staff import opened, page_url, staff_client, task_url, text_of
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
REASON = {"reason": "asked by the taxpayer"}


def _agent(**role: Any) -> Erp:
    return new_erp(taxpayer=make.intermediary(**role).taxpayer)


OTHER = "C8888888888"


def _for_other(**values: Any) -> Any:
    if values:
        make.taxpayer(tin=OTHER, **values)
    return _agent().login(on_behalf_of=OTHER)


def _permission(**values: Any) -> Any:
    agent = _agent()
    make.permission(intermediary=agent.role, taxpayer__tin=OTHER, **values)
    return agent.login(on_behalf_of=OTHER)


def _secret(**values: Any) -> Any:
    secret: Any = make.credential(**values)
    return Erp(secret.system_user.client_id, secret.clear, secret.system_user).login()


NOW = timezone.now
BLOCKED = {"blocked_at": NOW(), "blocked_by": "kumar", "blocked_reason": "leaked"}
FOR_OTHER, PAIR = (
    {"grant_permission": {"taxpayer": [OTHER], **codes}}
    for codes in ({}, {"codes": ["documents:submit documents:view"]})
)
NOT_ROLE = {"taxpayer": ["C7777777777"]}
# Logins that are refused, and the tasks that the page offers, with the values in their forms.
Tasks = dict[str, dict[str, list[str]]]
OF_OFFICERS: dict[str, tuple[Callable[[], Any], Tasks]] = {
    "blocked": (lambda: new_erp(**BLOCKED).login(), {"unblock_system_user": {}}),
    "expired": (lambda: new_erp(expires_at=NOW() - DAY).login(), {"extend_system_user": {}}),
    "no key to bind to": (lambda: new_erp(token_binding="dpop").login(), {"bind_tokens": {}}),
    "no certificate": (lambda: new_erp(token_binding="tls").login(), {"bind_tokens": {}}),
    "secret expired": (
        lambda: _secret(created_at=NOW() - 2 * DAY, expires_at=NOW() - DAY),
        {"rotate_secret": {}},
    ),
    "secret revoked": (lambda: _secret(slot=None, revoked_at=NOW()), {"rotate_secret": {}}),
    "wrong secret": (
        lambda: new_erp().login(client_secret=new_erp().client_secret),
        {"rotate_secret": {}},
    ),
    "wrong key": (
        lambda: (erp := new_key_erp()).login(erp.assertion(pair=new_pair())),
        {"register_client_key": {}},
    ),
    "unknown client": (lambda: new_erp().login(client_id="ci_test_" + "0" * 32), {}),
    "no scope left": (lambda: new_erp(scopes="").login(), {"change_system_user": {}}),
    "unknown scope": (lambda: new_erp().login(scope="nonsense"), {}),
    "missing parameter": (lambda: new_erp().login(grant_type=None), {}),
}
OF_REGISTRARS: dict[str, tuple[Callable[[], Any], Tasks]] = {
    "taxpayer not active": (
        lambda: new_erp(taxpayer=make.taxpayer(is_active=False)).login(),
        {"activate_taxpayer": {}},
    ),
    "not an intermediary": (
        lambda: new_erp(taxpayer__tin="C7777777777").login(on_behalf_of=OTHER),
        {"register_intermediary": NOT_ROLE},
    ),
    "intermediary not active": (
        lambda: _agent(is_active=False).login(on_behalf_of=OTHER),
        {"activate_intermediary": {}},
    ),
    "represented unknown": (_for_other, {"register_taxpayer": {"identifier": [OTHER]}}),
    "represented not active": (
        lambda: _for_other(is_active=False),
        {"activate_taxpayer": {}, **FOR_OTHER},
    ),
    "no permission": (lambda: _for_other(is_active=True), FOR_OTHER),
    "permission expired": (
        lambda: _permission(valid_from=NOW() - 2 * DAY, valid_until=NOW() - DAY),
        PAIR,
    ),
    "permission revoked": (lambda: _permission(revoked_at=NOW()), PAIR),
    "permission not yet valid": (lambda: _permission(valid_from=NOW() + DAY), PAIR),
}
CASES = {
    name: (role, *case)
    for role, cases in (("security officer", OF_OFFICERS), ("registrar", OF_REGISTRARS))
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_the_tasks_that_cure_it_are_offered_to_those_who_may_and_others_read_who_may(
    name: str, viewer: Client
) -> None:
    role, refused, tasks = CASES[name]
    event = event_of(refused())
    assert event.reason
    officer = staff_client(role)
    offered = {}
    for button in officer.get(page_url(event)).context["answer"]["cures"].buttons:
        url = urlsplit(button.url)
        offered[url.path.rstrip("/").rpartition("/")[2]] = parse_qs(url.query)
        assert officer.get(button.url).status_code == 200
    assert offered.keys() == tasks.keys()
    for task, values in tasks.items():
        assert values.items() <= offered[task].items(), task
    page = viewer.get(page_url(event))
    cures = page.context["answer"]["cures"]
    assert cures.buttons == []
    assert len(cures.for_others) == len(tasks)
    assert all(role in roles for _task, roles in cures.for_others)
    assert (f"({role})" in text_of(page)) is bool(tasks)


def test_a_task_that_is_not_possible_now_says_why() -> None:
    erp = new_erp()
    make.credential(system_user=erp.system_user, slot=2)
    event = event_of(erp.login(client_secret=new_erp().client_secret))
    page = staff_client("security officer").get(page_url(event))
    assert page.context["answer"]["cures"].buttons == []
    assert "has two live secrets:" in text_of(page)


def test_a_reason_of_a_later_version_is_no_error(rf: Any) -> None:
    involved = Involved(LoginEvent(reason="of_the_future"))
    assert not offered_cures(rf.get("/"), "of_the_future", involved, NOW())


def test_the_task_cures_the_login_and_the_page_says_so(viewer: Client) -> None:
    erp = new_erp(**BLOCKED)
    extend_system_user(system_user=erp.system_user, expires_at=NOW() + DAY, **why())
    event = event_of(erp.login())
    officer = staff_client("security officer", "ravi")
    before = text_of(officer.get(page_url(event)))
    assert "The same login would be refused again now." in before
    assert "Reason: leaked" in before
    assert "I will find out why" in before
    assert "Changed the last day" not in before  # that was before the login
    officer.post(task_url(erp.system_user, "unblock_system_user"), REASON)
    page = officer.get(page_url(event))
    after = text_of(page)
    assert "Fixed since then. The same login would get a token now." in after
    assert "Your ERP system can log in again now." in after
    assert "I will find out why" not in after
    assert "The ERP system received: This system user was blocked" in after
    assert "Unblocked the system user" in after
    assert "by ravi · Reason: asked by the taxpayer" in after
    assert not page.context["answer"]["cures"]
    states = [str(state.word) for _title, _row, state in page.context["records"]]
    assert states == ["Active", "Active"]  # as they are now
    assert "A token would be issued." in text_of(officer.get(page.context["what_if_url"]))
    viewed = text_of(viewer.get(page_url(event)))  # not the history
    assert "Fixed since then." in viewed
    assert "ravi" not in viewed
    erp.login()
    assert "would get a token now. A token since, " in text_of(officer.get(page_url(event)))


@pytest.mark.parametrize("binding", ["dpop", "tls"])
def test_a_client_that_cannot_prove_its_binding_is_not_fixed_before_the_binding_ends(
    binding: str,
) -> None:
    erp = new_erp(token_binding=binding)
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


def test_another_reason_that_holds_now_is_named_with_its_own_tasks() -> None:
    event = event_of(new_erp(**BLOCKED).login())
    SystemUser.objects.update(blocked_at=None, blocked_by="", blocked_reason="")
    Taxpayer.objects.update(is_active=False)
    page = staff_client("registrar").get(page_url(event))
    assert "Now it would be refused for another reason: Taxpayer not active." in text_of(page)
    (button,) = page.context["answer"]["cures"].buttons
    assert "activate_taxpayer" in button.url


@pytest.mark.parametrize("form", [{"grant_type": "x"}, {"scope": "nonsense"}])
def test_of_a_fault_of_the_request_only_a_later_token_is_known(
    form: dict[str, str], viewer: Client
) -> None:
    erp = new_erp()
    erp.login()
    event = event_of(erp.login(**form))
    new_erp().login()  # another client
    assert "A token since" not in text_of(viewer.get(page_url(event)))
    erp.login(headers={"user-agent": "NewServer/1"})  # perhaps another system: the old one fails
    page = text_of(viewer.get(page_url(event)))
    assert re.search(r"A token since, .{17,20}, from 127.0.0.1 by NewServer/1", page)
    assert "Fixed since then." not in page


def test_a_secret_that_expired_is_not_fixed_by_one_that_is_not_used() -> None:
    event = event_of(_secret(created_at=NOW() - 2 * DAY, expires_at=NOW() - DAY))
    Credential.objects.update(slot=None)
    make.credential(system_user_id=event.system_user_id)
    assert "Fixed since then." not in text_of(staff_client("viewer").get(page_url(event)))
