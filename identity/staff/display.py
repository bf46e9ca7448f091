"""Moments, values and links to records, as the pages show them.

Imports nothing of unfold: unfold renders widgets, and so loads the tags, when it is imported.
"""

from datetime import UTC, datetime
from typing import Any

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from taxpayers.evidence import EvidenceKind, shown
from taxpayers.moments import moment_text, moments_for_a_page
from tokens.http import Handler

STAFF_PATHS = ("/admin/", "/signin/")


def say_moments_as_pages(get_response: Handler) -> Handler:
    """On the pages texts of services say moments as the pages do: not in the management API."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(STAFF_PATHS):
            return get_response(request)
        with moments_for_a_page():
            return get_response(request)

    return middleware


def moment(value: datetime | None, otherwise: str = "—") -> SafeString:
    """The moment in the authority's time zone, to the minute; UTC to the second on hover."""
    if value is None:
        return format_html("{}", otherwise)
    utc = value.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
        _("{moment} UTC").format(moment=f"{utc:%Y-%m-%d %H:%M:%S}"),
        moment_text(value),
    )


def named(text: str, name: str) -> SafeString:
    """An identifier, with the name that people know it by; or the other way round."""
    return format_html('{} <small class="quiet">{}</small>', text, name) if name else escape(text)


def evidence_text(stored: dict[str, str] | None) -> str:
    """Who approved a change of a permission, and how that was proved (taxpayers.evidence)."""
    match shown(stored):
        case {"kind": EvidenceKind.PAPER_FORM, "paper_form": number}:
            return _("Paper form {number}").format(number=number)
        case {"kind": EvidenceKind.OWN_CLIENT, "approved_by": client_id}:
            return _("System user {client_id} of the taxpayer").format(client_id=client_id)
        case {"kind": EvidenceKind.SIGN_IN, **texts}:
            return _(
                "{approved_by} as {capacity}, {at}; signed in by {sign_in_method}, level"
                " {sign_in_level}; words {words_version}, {words_hash}"
            ).format(**texts | {"at": moment_text(datetime.fromisoformat(texts["at"]))})
    return _("None was entered")


def display_value(value: Any) -> str:
    """A value of any field in the language of the reader; empty for none."""
    match value:
        case None:
            return ""
        case bool():
            return _("yes") if value else _("no")
        case list():
            return ", ".join(str(item) for item in value)
        case datetime():
            return moment_text(value)
        case {"kind": _kind}:
            return evidence_text(value)
        case _:
            return str(value)


def list_url(model: type[Model], **query: Any) -> str:
    """The list of this kind of record, with this search and these filters."""
    opts = model._meta
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist", query=query)


def page_url(model: type[Model], key: Any) -> str:
    """The page of the record with this key."""
    opts = model._meta
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_change", args=[quote(key)])


def record_url(record: Model | None) -> str:
    """The page of any record; empty for none."""
    return page_url(type(record), record.pk) if record is not None else ""
