"""What a browser may load and run on the staff pages (Content Security Policy level 3).

CONTENT_SECURITY_POLICY in the settings is strict: no inline script runs without the nonce of its
response. It holds on the pages where passwords, codes and passkeys are entered. The admin needs two
exceptions for django-unfold: its Alpine.js turns the `x-…` attributes of its templates into
functions (`unsafe-eval`), and they have `style` attributes. Alpine's build without eval does not
understand them: they use arrow functions and globals such as `localStorage`. The price: on those
pages Alpine would also run the attributes of unescaped markup, so only autoescaping protects them.
Remove the exceptions as soon as unfold does not need them.
"""

from typing import Any

from csp.constants import NONCE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.middleware import CSPMiddleware, PolicyParts
from django.http import HttpRequest, HttpResponseBase

_UNFOLD: dict[str, Any] = {
    "script-src": [SELF, NONCE, UNSAFE_EVAL],
    "style-src": [SELF, UNSAFE_INLINE],
}
# The first five are not used. Passkeys and the copy button are, by our own pages only.
_PERMISSIONS_POLICY = ", ".join(
    (
        *(f"{name}=()" for name in ("camera", "microphone", "geolocation", "payment", "usb")),
        *(
            f"{name}=(self)"
            for name in (
                "publickey-credentials-get",
                "publickey-credentials-create",
                "clipboard-write",
            )
        ),
    )
)


class PageProtection(CSPMiddleware):
    """Sends the policy of the page, and forbids every cache to store it."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        match = request.resolver_match
        if match is not None and match.app_name == "admin":
            parts.replace = _UNFOLD | (parts.replace or {})
        return parts

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        response.headers.setdefault("Permissions-Policy", _PERMISSIONS_POLICY)
        response.headers.setdefault("Cache-Control", "no-store, private")
        return super().process_response(request, response)
