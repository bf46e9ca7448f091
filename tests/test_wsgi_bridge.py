"""Django's pages under the event loop: what reaches them, and what is refused before."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.test import override_settings
from pytest_django import DjangoAssertNumQueries

from identity.server.limits import BUFFERED_BODY_BYTES
from identity.server.overload import LongBodies, NoPlace, NotSignedIn, Places, TooLong
from identity.server.wsgi_bridge import Environ, WsgiBridge
from identity.staff.imports.import_task import ImportTask
from identity.uploads import long_bodies
from tests.introspection.api import token_of
from tests.management_api.portal import SCOPES, new_portal
from tests.support.accounts import signed_in
from tests.support.erp import Erp
from tests.test_doors import IMPORT, MANAGEMENT, PERMISSIONS, answer, scope


def echo(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    shown = {key: value for key, value in environ.items() if isinstance(value, str)}
    shown["body"] = environ["wsgi.input"].read().decode()
    start_response("400 invalid_request", [("Content-Type", "application/json")])
    return [json.dumps(shown).encode()]


def call(bridge: WsgiBridge, *parts: bytes, headers: Any = (), ends: bool = True) -> Any:
    return answer(bridge, scope("/x", "POST") | {"headers": [*headers]}, *parts, ends=ends)


def bridge_to(
    application: Any = echo, *, places: int = 4, long_bodies: LongBodies | None = None
) -> WsgiBridge:
    return WsgiBridge(application, threads=2, places=places, long_bodies=lambda _scope: long_bodies)


def body_of(answered: tuple[int, dict[str, str], bytes]) -> Any:
    return json.loads(answered[2])


def test_a_page_gets_the_whole_body_and_its_length() -> None:
    chunked = [(b"transfer-encoding", b"chunked"), (b"content-length", b"9")]
    seen = body_of(asyncio.run(call(bridge_to(), b"a=", b"b", headers=chunked)))
    assert (seen["body"], seen["CONTENT_LENGTH"]) == ("a=b", "3")
    assert "HTTP_TRANSFER_ENCODING" not in seen


def test_a_header_with_an_underscore_does_not_stand_for_another() -> None:
    headers = [(b"x_forwarded_for", b"203.0.113.9"), (b"x-forwarded-for", b"10.0.0.1")]
    seen = body_of(asyncio.run(call(bridge_to(), headers=headers)))
    assert seen["HTTP_X_FORWARDED_FOR"] == "10.0.0.1"


PART = b"a" * BUFFERED_BODY_BYTES
LONGEST = 5 * BUFFERED_BODY_BYTES


def known(_scope: Any) -> None:
    """All callers may send them."""


def unknown(_scope: Any) -> None:
    raise NotSignedIn


@pytest.mark.parametrize(
    ("check", "parts", "outcome", "parts_read"),
    [
        (known, 5, None, 6),  # with the end
        (known, 6, TooLong, 6),
        (known, 99, TooLong, 6),
        (unknown, 5, NotSignedIn, 2),
        (unknown, 99, NotSignedIn, 2),
        (None, 1, None, 2),
        (None, 99, TooLong, 2),
    ],
)
def test_a_long_body_is_read_to_its_length_for_known_callers_and_for_no_other(
    check: Any, parts: int, outcome: type[Exception] | None, parts_read: int
) -> None:
    rule = LongBodies(LONGEST, Places(1), check) if check else None
    read = 0

    async def receive() -> dict[str, Any]:
        nonlocal read
        read += 1
        return {"type": "http.request", "body": PART * (read <= parts), "more_body": read <= parts}

    async def send(message: dict[str, Any]) -> None:
        pass

    async def answered() -> None:
        await bridge_to(long_bodies=rule)(scope("/x", "POST"), receive_until_whole, send)

    async def receive_until_whole() -> dict[str, Any]:
        return await (receive() if read <= parts else asyncio.Future())

    if outcome is None:
        asyncio.run(answered())
    else:
        with pytest.raises(outcome):
            asyncio.run(answered())
    assert read == parts_read


def test_long_bodies_have_places_of_their_own_and_each_is_given_back() -> None:
    """The files that they fill are bounded, and a slow one takes no place of another request."""

    async def scenario() -> None:
        bridge = bridge_to(places=1, long_bodies=LongBodies(LONGEST, Places(2), known))
        is_over = asyncio.Event()

        async def begin() -> asyncio.Task[None]:
            parts, is_read = [PART, PART], asyncio.Event()

            async def slow() -> dict[str, Any]:
                if parts:
                    return {"type": "http.request", "body": parts.pop(), "more_body": True}
                is_read.set()
                await is_over.wait()
                return {"type": "http.disconnect"}

            task = asyncio.create_task(bridge(scope("/x", "POST"), slow, None))
            await asyncio.wait_for(is_read.wait(), 10)
            return task

        waiting = [await begin(), await begin()]
        with pytest.raises(NoPlace):
            await call(bridge, PART, PART)
        assert body_of(await call(bridge, b"short"))["body"] == "short"
        is_over.set()
        await asyncio.gather(*waiting)
        assert body_of(await call(bridge, PART, PART))["CONTENT_LENGTH"] == str(2 * len(PART))

    asyncio.run(scenario())


def test_a_request_that_ends_too_early_reaches_no_page() -> None:
    assert asyncio.run(call(bridge_to(), b"a=", ends=False))[0] == 0


@pytest.mark.parametrize("places", [1, 3])
def test_more_requests_than_places_are_refused_at_once(places: int) -> None:
    released = threading.Event()

    def wait(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        released.wait(10)
        return echo(environ, start_response)

    async def flood() -> list[int]:
        bridge = bridge_to(wait, places=places)
        first = [asyncio.create_task(call(bridge)) for _ in range(places)]
        await asyncio.sleep(0.05)
        with pytest.raises(NoPlace):
            await call(bridge)
        released.set()
        return [(await task)[0] for task in first]

    assert asyncio.run(flood()) == [400] * places


class _Endless:
    """An answer of a page without an end, as an export of millions of rows."""

    def __init__(self) -> None:
        self.is_closed = threading.Event()
        self.chunks = 0

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> "_Endless":
        start_response("200 OK", [])
        return self

    def __iter__(self) -> "_Endless":
        return self

    def __next__(self) -> bytes:
        self.chunks += 1
        assert self.chunks < 10_000, "it was not stopped"
        return b"row"

    def close(self) -> None:
        self.is_closed.set()


def test_an_answer_to_a_client_that_has_gone_ends() -> None:
    page = _Endless()
    sent: list[dict[str, Any]] = []

    async def scenario() -> None:
        has_gone = asyncio.Event()
        whole = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            if whole:
                return whole.pop()
            await has_gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)
            if len(sent) == 5:
                has_gone.set()

        await asyncio.wait_for(bridge_to(page)(scope("/x", "POST"), receive, send), 30)

    asyncio.run(scenario())
    assert page.is_closed.is_set()
    assert 3 < page.chunks < 1_000


MIB, KIB = 1 << 20, 1 << 10
FORM = "/admin/taxpayers/systemuser/7/limit_permissions/"


def rule_of(path: str) -> LongBodies:
    rule = long_bodies(scope(path, "POST"))
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


@override_settings(SCOPES=SCOPES)
def test_the_management_api_reads_long_bodies_only_with_its_own_tokens(
    erp: Erp, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    right, other = new_portal().token, token_of(erp)
    cases: dict[str, Any] = {right: True, other: False, f"{right[:-9]}AAAAAAAAA": False, "x": False}
    with django_assert_num_queries(0):
        assert {t: may_send(MANAGEMENT, authorization=f"Bearer {t}") for t in cases} == cases
        assert not may_send(MANAGEMENT)
