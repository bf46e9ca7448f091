"""What browsers may do with the staff pages, beyond the content security policy of the settings."""

from csp.middleware import CSPMiddleware
from django.http import HttpRequest, HttpResponseBase

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
