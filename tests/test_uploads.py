"""Who may send a long body where, before more of it is read than of any other."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.test import override_settings
from pytest_django import DjangoAssertNumQueries

from identity.server.long_bodies import LongBodies, NotSignedIn
from identity.staff.imports.import_task import ImportTask
from identity.uploads import long_bodies
from tests.introspection.api import token_of
from tests.management_api.portal import SCOPES, new_portal
from tests.support.accounts import signed_in
from tests.support.erp import Erp
from tests.test_doors import IMPORT, MANAGEMENT, PERMISSIONS, scope

MIB, KIB = 1 << 20, 1 << 10
FORM = "/admin/taxpayers/systemuser/7/limit_permissions/"


def rule_of(path: str, method: str = "POST") -> LongBodies:
    rule = long_bodies(scope(path, method))
    assert rule is not None
    return rule


def may_send(path: str, **headers: str) -> bool:
    try:
        rule_of(path).check(scope(path, "POST", **headers))
    except NotSignedIn:
        return False
    return True


def cookie(key: str | None) -> str:
    return f"a=b; sessionid={key}"


@pytest.mark.parametrize(
    ("path", "method", "most_bytes"),
    [
        (IMPORT, "POST", 17 * MIB),
        (IMPORT, "PUT", 128 * KIB),
        (f"{IMPORT}more/", "POST", 128 * KIB),
        (FORM, "POST", 128 * KIB),
        (f"{MANAGEMENT}/import_registry/", "POST", 512 * KIB),
        ("/api/v1/management/imports/taxpayers", "POST", 512 * KIB),
        *((path, "POST", None) for path in ("/", "/signin/", "/adminx", PERMISSIONS, "/guide")),
    ],
)
def test_an_address_takes_what_it_needs(path: str, method: str, most_bytes: int | None) -> None:
    rule = long_bodies(scope(path, method))
    assert (rule and rule.most_bytes) == most_bytes


def test_every_import_of_staff_is_such_an_address() -> None:
    urls = {
        task(model_admin).url()
        for model_admin in admin.site._registry.values()
        for task in getattr(model_admin, "tasks", ())
        if issubclass(task, ImportTask)
    }
    assert IMPORT in urls
    assert len(urls) == 4
    assert {rule_of(url).most_bytes for url in urls} == {17 * MIB}


@pytest.mark.django_db
def test_files_come_from_a_session_and_forms_from_one_that_has_ended_too(admin_user: User) -> None:
    session = cookie(signed_in(admin_user).session.session_key)
    assert [may_send(path, cookie=session) for path in (IMPORT, FORM)] == [True, True]
    Session.objects.update(expire_date=datetime.now(UTC) - timedelta(seconds=1))
    assert [may_send(path, cookie=session) for path in (IMPORT, FORM)] == [False, True]
    Session.objects.all().delete()
    assert [may_send(path, cookie=session) for path in (IMPORT, FORM)] == [False, False]


@pytest.mark.django_db
def test_a_session_before_the_sign_in_sends_no_file() -> None:
    session = SessionStore()
    session["signing_in"] = "admin"
    session.create()
    assert not may_send(IMPORT, cookie=cookie(session.session_key))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"cookie": "sessionid"},
        {"cookie": cookie("x")},
        {"cookie": cookie("A" * 32)},
        {"cookie": "sessionid=" + "a" * 40},
        {"authorization": "Bearer a.b.c"},
    ],
)
def test_strangers_cost_no_query(
    headers: dict[str, str], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        assert not may_send(IMPORT, **headers)


@pytest.mark.django_db
@override_settings(SCOPES=SCOPES)
def test_the_management_api_reads_long_bodies_only_with_its_own_tokens(
    erp: Erp, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    right, other = new_portal().token, token_of(erp)
    cases: dict[str, Any] = {right: True, other: False, f"{right[:-9]}AAAAAAAAA": False, "x": False}
    with django_assert_num_queries(0):
        assert {t: may_send(MANAGEMENT, authorization=f"Bearer {t}") for t in cases} == cases
        assert not may_send(MANAGEMENT)
