"""What a browser may load and run on the staff's pages (Content Security Policy level 3).

No inline script runs anywhere without the nonce of its own answer. The pages where passwords, codes
and passkeys are given are strict. The admin needs two exceptions for django-unfold: its Alpine.js
turns the `x-…` attributes of its templates into functions (`unsafe-eval`), and they have `style`
attributes. Alpine's own build without eval does not understand them: they use arrow functions and
globals such as `localStorage`. The price: on those pages Alpine would also run the attributes of
markup that slips in unescaped, so there it is autoescaping alone that protects. Remove the
exception as soon as unfold does without.
"""

from typing import Any

from csp.constants import NONCE, NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.middleware import CSPMiddleware, PolicyParts
from django.http import HttpRequest, HttpResponseBase

DIRECTIVES: dict[str, Any] = {
    "default-src": [SELF],
    "script-src": [SELF, NONCE],
    "style-src": [SELF, NONCE],
    "img-src": [SELF, "data:"],  # the QR code of the second factor
    "object-src": [NONE],
    "base-uri": [SELF],
    "form-action": [SELF],
    "frame-ancestors": [NONE],
}
_UNFOLD: dict[str, Any] = {
    "script-src": [SELF, NONCE, UNSAFE_EVAL],
    "style-src": [SELF, UNSAFE_INLINE],
}
# None of these is used; passkeys and the copy button are, by our own pages only.
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
    """Sends the policy that fits the page; what is for one member of staff, no cache keeps."""

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
