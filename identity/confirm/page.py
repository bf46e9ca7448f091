"""The confirm page: a portal ticket opens it once, and a person approves or declines the request.

No session, no cookie, no search: what the ticket said stands, signed, in the form itself.
"""

import base64
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.utils import timezone, translation
from uuid_utils.compat import uuid7

from identity.confirm.refusals import TEXTS, ConfirmRefused
from identity.confirm.tickets import take_ticket
from identity.confirm.words import words_of
from identity.developers.pages import LANGUAGES, preferred
from identity.sandbox import portal as sandbox
from taxpayers.evidence import NEEDED, Evidence, EvidenceKind
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import PermissionRequest
from taxpayers.moments import end_of_day, moments_for_a_page, parse_moment
from taxpayers.services import Author, ServiceError
from taxpayers.services.decisions import OtherTaxpayer, operations_for
from taxpayers.services.permission_requests import why_not_decided
from tokens.request.proxies import TrustedProxies

logger = logging.getLogger("identity.confirm")
OPEN_FOR = 900  # seconds that a person has to read and decide
_SALT = "identity.confirm.2"  # another one whenever what is signed has other names
_STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()


def confirm(request: HttpRequest, id: UUID) -> HttpResponse:  # noqa: A002 - its name in the address
    """GET with a ticket opens the page; POST, from the page, decides or changes the language."""
    language = preferred(request.headers.get("Accept-Language", ""))
    with translation.override(_chosen(request, language)), moments_for_a_page():
        try:
            if request.method == "POST":
                return _decide(request, id)
            if request.method in ("GET", "HEAD"):
                return _open(request, id)
        except ConfirmRefused as refused:
            logger.info("confirm page", extra={"outcome": refused.name, "request_id": str(id)})
            text = TEXTS[refused.name]
            shown = {
                "what": translation.gettext(text.what),
                "what_to_do": translation.gettext(text.what_to_do),
                "detail": refused.detail,
            }
            return _page("refused", shown, status=text.status)
    return HttpResponse(status=405, headers={"Allow": "GET, HEAD, POST"})


def _chosen(request: HttpRequest, otherwise: str) -> str:
    asked = request.POST.get("language") or request.POST.get("shown_in")
    asked = asked or request.GET.get("ui_locales", "").partition(" ")[0]
    return asked if asked in LANGUAGES else otherwise


def _open(request: HttpRequest, key: UUID) -> HttpResponse:
    text = request.GET.get("ticket", "")
    if not text:
        return _to_the_portal(key)
    at = timezone.now()
    ticket = take_ticket(text, at)
    if ticket.request != str(key):
        raise ConfirmRefused("other_request")
    row = _request(key, ticket.taxpayer, at)
    if operations_for(row)[0].duty not in ticket.duties:
        raise ConfirmRefused("other_portal")
    until = sandbox.end_of_approval(ticket.portal, row.valid_until, at)
    facts = {**asdict(ticket), "taxpayer": str(ticket.taxpayer), "until": until and str(until)}
    del facts["duties"]
    return _show(row, facts, at)


def _to_the_portal(key: UUID) -> HttpResponse:
    """`kind` tells the portal with which of its keys it signs. Raises ConfirmRefused."""
    row = PermissionRequest.objects.filter(pk=key).first()
    if not (portal := sandbox.portal_url(row.asked if row else None)):
        raise ConfirmRefused("no_ticket")
    kind = row.kind if row else "permission"
    mark = "&" if "?" in portal else "?"
    address = f"{portal}{mark}{urlencode({'request': key, 'kind': kind})}"
    return HttpResponseRedirect(address, headers={"Cache-Control": "no-store"})


def _decide(request: HttpRequest, key: UUID) -> HttpResponse:
    at = timezone.now()
    facts = _facts(request.POST.get("opened", ""), key)
    taxpayer = TaxpayerId(*facts["taxpayer"].split(":"))
    row = _request(key, taxpayer, at)
    decision = request.POST.get("decision", "")
    if decision not in ("approve", "less", "decline"):
        return _show(row, facts, at)
    proved = {name: facts[name] for name in NEEDED[EvidenceKind.SIGN_IN]}
    address = TrustedProxies(settings.TRUSTED_PROXIES).source_address(request.META)
    given: dict[str, Any] = {
        "taxpayer": taxpayer,
        "evidence": Evidence(EvidenceKind.SIGN_IN, **proved),
        "by": Author.client(facts["portal"], address, uuid7()),
        "at": at,
    }
    approve, decline = operations_for(row)
    try:
        if decision == "decline":
            row = decline.run(row, **given)
        else:
            less = _less(request) if decision == "less" else {}
            until = less.get("until") or _until(facts)
            less["until"] = sandbox.end_of_approval(facts["portal"], until, at)
            row = approve.run(row, **given, **less)
    except OtherTaxpayer:
        raise ConfirmRefused("other_taxpayer") from None
    except ServiceError as fault:
        raise ConfirmRefused("refused", str(fault)) from None
    logger.info("confirm page", extra={"outcome": row.state, "request_id": str(row.pk)})
    if row.return_address and not row.is_connection:
        mark = "&" if urlsplit(row.return_address).query else "?"
        back = f"{row.return_address}{mark}{urlencode({'request': row.pk, 'state': row.state})}"
        return HttpResponse(status=303, headers={"Location": back, "Cache-Control": "no-store"})
    # Anyone can ask for a connection: its address is no registered one, so the person decides.
    return _page("done", {"row": row, "host": urlsplit(row.return_address).hostname})


def _less(request: HttpRequest) -> dict[str, Any]:
    """Which of the codes, and until when. Raises ServiceError."""
    codes, day = request.POST.getlist("codes"), request.POST.get("until", "")
    if not codes:
        raise ServiceError("Choose at least one code, or decline.")
    try:
        return {"codes": codes, "until": parse_moment(day, end_of_day) if day else None}
    except (ValueError, OverflowError):
        raise ServiceError("The last day is no day.") from None


def _request(key: UUID, taxpayer: TaxpayerId, at: datetime) -> PermissionRequest:
    """The request, if it is to this taxpayer and open. Raises ConfirmRefused."""
    rows = PermissionRequest.objects.select_related("intermediary__taxpayer")
    row = rows.filter(pk=key).first()
    if row is None:
        raise ConfirmRefused("unknown_request")
    if row.asked != taxpayer:
        raise ConfirmRefused("other_taxpayer")
    if fault := why_not_decided(row, at):
        raise ConfirmRefused("not_open", fault)
    return row


def _show(row: PermissionRequest, facts: Mapping[str, Any], at: datetime) -> HttpResponse:
    """The page; its form carries what the ticket said and the hash of the words."""
    words = words_of(row, at, _until(facts))
    shown = {"words_version": words.version, "words_hash": words.hash}
    opened = signing.dumps({**facts, **shown, "request": str(row.pk)}, salt=_SALT)
    back, is_led = urlsplit(row.return_address), row.return_address and not row.is_connection
    # A browser also checks where a form leads after its answer.
    forms = f"'self' {back.scheme}://{back.netloc}" if is_led else "'self'"
    context = {"row": row, "words": words, "facts": facts, "opened": opened}
    return _page("ask", context, forms=forms)


def _facts(opened: str, key: UUID) -> dict[str, Any]:
    """What the ticket said, from the form. Raises ConfirmRefused."""
    try:
        facts: dict[str, Any] = signing.loads(opened, salt=_SALT, max_age=OPEN_FOR)
    except signing.BadSignature:
        raise ConfirmRefused("page_too_old") from None
    if facts["request"] != str(key):
        raise ConfirmRefused("other_request")
    return facts


def _until(facts: Mapping[str, Any]) -> datetime | None:
    """When what is approved ends at the latest, as it was shown."""
    return datetime.fromisoformat(facts["until"]) if facts["until"] else None


def _page(
    part: str, context: Mapping[str, Any], *, status: int = 200, forms: str = "'none'"
) -> HttpResponse:
    language = translation.get_language() or "en"
    more = {"part": part, "style": _STYLE, "language": language, "languages": LANGUAGES}
    body = render_to_string("confirm/page.html", {**context, **more})
    policy = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {forms};"
    headers = {
        "Cache-Control": "no-store",
        "Content-Language": language,
        "Content-Security-Policy": f"{policy} base-uri 'none'; frame-ancestors 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(body, status=status, headers=headers)
