"""Every address of the management API. `identity.urls` has them unless SERVE=login."""

from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern, path

from identity.api.events import changes, webhooks
from identity.api.framework.json_body import JsonBody, MergePatchBody
from identity.api.framework.kinds import RecordKind
from identity.api.framework.records import ListView, RecordView
from identity.api.imports.view import IMPORTS, ImportView
from identity.api.openapi import Description, NoSuchAddress, ProblemPage
from identity.api.registry import (
    intermediaries,
    logins,
    permission_requests,
    permissions,
    system_users,
    taxpayers,
)
from identity.api.registry.history import history_of
from identity.management_api import BASE_PATH

_READ = ("get", "head")


def _at(
    rest: str, kind: RecordKind, view: type[RecordView], *methods: str, **more: Any
) -> URLPattern:
    made = view.as_view(kind=kind, http_method_names=methods, **more)
    return path(f"{BASE_PATH}/{kind.name}{rest}", made)


def _list(kind: RecordKind) -> URLPattern:
    methods = (*_READ, "post") if kind.create else _READ
    return _at("", kind, ListView, *methods, listing=kind.listing, task=kind.create)


def _record(kind: RecordKind) -> URLPattern:
    methods, parsers = (*_READ, "patch") if kind.change else _READ, (JsonBody, MergePatchBody)
    rest = f"/<str:{kind.parameter}>"
    return _at(rest, kind, RecordView, *methods, task=kind.change, parser_classes=parsers)


def _all(kind: RecordKind) -> Iterator[URLPattern]:
    """A kind that changes: its tasks, and the lists of what belongs to one record."""
    yield _list(kind)
    yield _record(kind)
    record = f"/<str:{kind.parameter}>"
    for task in kind.tasks:
        yield _at(f"{record}/{task.before}{task.name}", kind, RecordView, "post", task=task)
    history = history_of(kind.listing.name, kind.singular)
    for name, part in (*kind.parts.items(), ("history", history)):
        rest = f"{record}/{name}"
        yield _at(rest, kind, ListView, *_READ, listing=part, is_of_record=True)


records: list[URLPattern] = [
    *_all(taxpayers.KIND),
    *_all(intermediaries.KIND),
    _list(permissions.CODES),
    *_all(permissions.KIND),
    *_all(permission_requests.KIND),
    *_all(system_users.KIND),
    _list(logins.KIND),
    _record(logins.KIND),
    *(
        path(
            f"{BASE_PATH}/imports/{name.replace('_', '-')}",
            ImportView.as_view(name=name, body=body, row=row),
        )
        for name, body, row in IMPORTS
    ),
    path(f"{BASE_PATH}/changes", changes.ChangesView.as_view()),
    *_all(webhooks.KIND),
]
urlpatterns: list[URLPattern] = [
    *records,
    path(f"{BASE_PATH}/openapi.json", Description.as_view(patterns=tuple(records))),
    path(f"{BASE_PATH}/problems/<str:kind>", ProblemPage.as_view()),
    *(path(f"{BASE_PATH}{rest}", NoSuchAddress.as_view()) for rest in ("", "/", "/<path:rest>")),
]
