"""The search box of every page, and its results: one screen, grouped by kind.

What was typed comes in the body of a POST, because addresses are logged and people paste secrets
into search boxes. A text without a secret then gets an address that can be sent to a colleague.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import jwt
from django.contrib.admin.views.decorators import staff_member_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext
from django.views.decorators.http import require_http_methods

from identity.staff.framework.lists import TOO_GENERAL, page_frame
from identity.staff.framework.search import TooGeneral
from identity.staff.search.lookups import (
    Group,
    TypedText,
    activity_groups,
    read_typed,
    registry_groups,
)
from taxpayers.models import SystemUser
from taxpayers.redaction import HIDDEN
from tokens.access_tokens.verification import InvalidToken, verify
from tokens.keys.signer import current_key_ring
from tokens.login_settings import login_settings

_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


def client_id_in(text: str, at: datetime) -> str:
    """Also of a token that has expired; empty: there is none of ours in the text."""
    token = _TOKEN.search(text)
    if token is None:
        return ""
    try:
        claims = jwt.decode(token[0], options={"verify_signature": False})
        issued_at = min(at, datetime.fromtimestamp(claims["iat"], UTC))
        audiences = {*login_settings().audiences.values()}
        ring, issuer = current_key_ring(at), login_settings().issuer
        return verify(token[0], ring, issuer=issuer, audiences=audiences, at=issued_at).client_id
    except (InvalidToken, jwt.InvalidTokenError, LookupError, TypeError, ValueError, OverflowError):
        return ""


MIN_LENGTH = 2


@require_http_methods(["GET", "HEAD", "POST"])
def search(request: HttpRequest) -> HttpResponse:
    """The results as a page, or without its frame for the script of the search box."""
    text = (request.POST if request.method == "POST" else request.GET).get("q", "")
    if HIDDEN in text:  # what was there was taken out: `identity.staff.page_protection`
        owner = None
        if request.user.has_perm("taxpayers.view_systemuser"):
            client_id = client_id_in(getattr(request, "pasted", ""), timezone.now())
            owner = SystemUser.objects.filter(client_id=client_id).first()
        status = _("This is a secret.")
        return _respond(request, {"is_credential": True, "owner": owner, "status": status})
    typed = read_typed(text)
    context: dict[str, Any] = {"term": typed.term}
    if len(typed.term) >= MIN_LENGTH:
        context |= _found(request, typed)
    if request.method == "POST" and not _is_for_script(request):
        results = reverse("staff_search", query={"q": typed.term})
        return HttpResponseRedirect(context.get("exact_url") or results)
    return _respond(request, context)


search_view = staff_member_required(search, login_url="account_login")


def _found(request: HttpRequest, typed: TypedText) -> dict[str, Any]:
    try:
        groups = [*registry_groups(request, typed), *activity_groups(request, typed)]
    except TooGeneral:
        return {"too_general": TOO_GENERAL, "status": TOO_GENERAL}
    found = _exact_hit_first(groups)
    exact = [hit.url for group in found for hit in group.hits if hit.is_exact]
    exact_url = exact[0] if len(exact) == 1 else ""  # Enter opens it
    return {
        "found": found,
        "exact_url": exact_url,
        "status": _status(sum(len(group.hits) for group in found)),
    }


def _exact_hit_first(groups: Sequence[Group]) -> list[Group]:
    """Without empty groups; the first exact hit in a separate group, before all others."""
    exact = next((hit for group in groups for hit in group.hits if hit.is_exact), None)
    if exact is None:
        return [group for group in groups if group.hits]
    others = [
        replace(group, hits=[hit for hit in group.hits if hit is not exact]) for group in groups
    ]
    first = Group(_("Exact match"), [exact])
    return [first, *(group for group in others if group.hits or group.more_url)]


def _status(count: int) -> str:
    text = ngettext("{count} result", "{count} results", count)
    return text.format(count=count) if count else _("Nothing found.")


def _respond(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    if _is_for_script(request):
        return TemplateResponse(request, "staff/search/results.html", context)
    frame = page_frame(request, (_("Search"), ""))
    return TemplateResponse(request, "staff/search/page.html", frame | context)


def _is_for_script(request: HttpRequest) -> bool:
    return request.headers.get("X-Requested-With") == "XMLHttpRequest"
