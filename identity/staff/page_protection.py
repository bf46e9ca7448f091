"""What protects the staff pages: the policy for browsers; secrets that are typed are taken out.

What is in an address ends in the history of the browser, in exports and saved views (contract 5).
"""

from csp.middleware import CSPMiddleware
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.http.request import UnreadablePostError
from django.urls import reverse
from django.utils.translation import gettext as _

from identity.staff.display import STAFF_PATHS
from taxpayers.redaction import hide_pasted_secrets, holds_secret
from tokens.http import Handler

# The first five are not used. Passkeys and the copy button are, by our own pages only.
_PERMISSIONS_POLICY = (
    "camera=(), microphone=(), geolocation=(), payment=(), usb=(),"
    " publickey-credentials-get=(self), publickey-credentials-create=(self), clipboard-write=(self)"
)


class PageProtection(CSPMiddleware):
    """Sends the policy of the page, and forbids every cache to store it."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        response.headers.setdefault("Permissions-Policy", _PERMISSIONS_POLICY)
        response.headers.setdefault("Cache-Control", "no-store, private")
        return super().process_response(request, response)


# No text that staff type has so many, and to look for secrets behind them would cost many tokens.
_MOST_ESCAPES = 4096


def take_out_secrets(get_response: Handler) -> Handler:
    """Leads from an address with a secret to the same one without it; hides those in a form."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(STAFF_PATHS):
            return get_response(request)
        if request.META.get("QUERY_STRING", "").count("%") > _MOST_ESCAPES:
            return HttpResponseRedirect(request.path)
        if address := _address_without(request):
            text = _("This is a secret or a token. It was not searched for, and not stored.")
            _tell(request, text)
            return HttpResponseRedirect(address)
        if request.method == "POST" and request.user.is_authenticated:
            _hide_in_form(request)
        return get_response(request)

    return middleware


def _address_without(request: HttpRequest) -> str:
    """The address without the parameters that hold a secret; empty: none does."""
    is_in_path = holds_secret(request.path_info)
    if not is_in_path and not holds_secret(request.META.get("QUERY_STRING", "")):
        return ""
    others = QueryDict(mutable=True)
    for name, values in request.GET.lists():
        if harmless := [value for value in values if not holds_secret(f"{name}={value}")]:
            others.setlist(name, harmless)
    path = reverse("admin:index") if is_in_path else request.path
    return f"{path}?{others.urlencode()}" if others and not is_in_path else path


def _hide_in_form(request: HttpRequest) -> None:
    try:
        sent = request.POST
    except UnreadablePostError:  # the browser is gone: Django answers this where it reads the form
        return
    held = [
        name
        for name, values in sent.lists()
        if "password" not in name and any(map(holds_secret, values))
    ]
    if not held:
        return
    hidden = sent.copy()
    for name in held:
        hidden.setlist(name, [hide_pasted_secrets(value) for value in sent.getlist(name)])
    request.POST = hidden  # type: ignore[assignment]  # Django's own form parser sets such a one
    if request.path_info == reverse("staff_search"):  # its own page says so, and whose it is
        request.pasted = sent.get("q", "")  # type: ignore[attr-defined]  # in memory only
    else:
        text = _(
            "You entered a secret or a token. It was replaced by [hidden], and not stored."
            " Treat it as compromised: issue another one and revoke this one."
        )
        _tell(request, text)


def _tell(request: HttpRequest, text: str) -> None:
    if request.headers.get("X-Requested-With") != "XMLHttpRequest":
        messages.warning(request, text)
