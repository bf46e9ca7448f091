"""Records of the registry and protected APIs by what was typed, each as its list searches it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from identity.staff.display import record_url
from identity.staff.framework.records import RecordAdmin
from identity.staff.framework.search import limited_search
from identity.staff.search.found import MAX_IN_GROUP, Group, Hit, group_of
from identity.staff.search.typed import TypedText
from taxpayers.models import Intermediary, SystemUser, Taxpayer
from tokens.models import ProtectedApi


@dataclass(frozen=True, slots=True)
class SearchedKind:
    """One kind of record: how its hits look, and what names one of them exactly."""

    model: type[Model]
    title: Any
    name: Callable[[Any], str]
    detail: Callable[[Any], str]
    identifier: Callable[[Any], str]


KINDS = (
    SearchedKind(
        Taxpayer,
        gettext_lazy("Taxpayers"),
        lambda row: row.name,
        lambda row: str(row.identifier),
        lambda row: str(row.identifier),
    ),
    SearchedKind(
        SystemUser,
        gettext_lazy("System users"),
        lambda row: row.name or row.client_id,
        lambda row: f"{row.client_id} · {row.taxpayer}",
        lambda row: row.client_id,
    ),
    SearchedKind(
        Intermediary,
        gettext_lazy("Intermediaries"),
        lambda row: row.taxpayer.name,
        lambda row: str(row.taxpayer.identifier),
        lambda row: "",  # the taxpayer of the same identifier is the exact hit
    ),
    SearchedKind(
        ProtectedApi,
        gettext_lazy("Protected APIs"),
        lambda row: row.name,
        lambda row: f"{row.client_id} · {row.audience}",
        lambda row: row.client_id,
    ),
)


def registry_groups(request: HttpRequest, typed: TypedText) -> Iterator[Group]:
    """A group for each kind that this person may see; none if only logins can have it."""
    if typed.reference is not None or typed.address is not None:
        return
    for kind in KINDS:
        pages = admin.site.get_model_admin(kind.model)
        assert isinstance(pages, RecordAdmin)  # noqa: S101 - so are all of ours
        if pages.has_view_permission(request):
            hits = [_hit(kind, pages, row, typed) for row in _rows(request, pages, typed.term)]
            yield group_of(kind.title, hits, pages.list_url(), typed.term)


def _rows(request: HttpRequest, pages: RecordAdmin, term: str) -> list[Any]:
    """As many as a group shows, and one more; without an order, so that an index can answer.

    Raises TooGeneral.
    """
    rows = pages.get_queryset(request).order_by()
    found: dict[Any, Any] = {}
    with limited_search():
        for condition in pages.search_conditions(term):
            for row in rows.filter(condition)[: MAX_IN_GROUP + 1]:
                found.setdefault(row.pk, row)
            if len(found) > MAX_IN_GROUP:
                break
    return list(found.values())


def _hit(kind: SearchedKind, pages: RecordAdmin, row: Any, typed: TypedText) -> Hit:
    is_exact = kind.identifier(row).casefold() == typed.term.casefold()
    badge = pages.state(row)  # type: ignore[attr-defined]  # the column of its list
    return Hit(kind.name(row), kind.detail(row), record_url(row), badge, is_exact)
