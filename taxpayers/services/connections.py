"""Connections: an ERP system asks to log in as its taxpayer, with its own key and no secret.

As a request of an intermediary (`permission_requests`), but anyone can ask: what is asked is little
and limited, and approving it is to issue credentials.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Unpack

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from taxpayers import actions
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import DEFAULT_SCOPE, PermissionRequest
from taxpayers.models.permission_request import OPEN
from taxpayers.services.history import Asked, ChangeContext
from taxpayers.services.login_method.registration import validate_keys
from taxpayers.services.permission_requests import store_request, validate_reference
from taxpayers.services.system_users import validate_return_addresses
from taxpayers.validation import ServiceError, validate_end, validate_known, validate_text

MAX_NAME_LENGTH = 100
LIFETIME = timedelta(days=3)  # a weekend; what was not decided keeps others out until then
# How many may be open: in all, from one address (an IPv6 address as its /64), for one taxpayer, and
# both. So the database is never filled, and one address does not keep a taxpayer's own systems out.
MOST_OPEN = {"all": 10_000, "address": 100, "taxpayer": 50, "both": 5}


@transaction.atomic
def ask_connection(
    *,
    taxpayer: TaxpayerId,
    key: str,
    name: str,
    scopes: Collection[str] = (DEFAULT_SCOPE,),
    valid_until: datetime | None = None,
    own_reference: str = "",
    return_address: str = "",
    source: str,
    **asked: Unpack[Asked],
) -> PermissionRequest:
    """Ask this taxpayer, whether it exists or not; `key`: a JWK whose owner asks. Safe to repeat.

    `source`: the address as limits count it. Raises ServiceError for what cannot be approved, or
    if too many are open.
    """
    at = asked["at"]
    (public,) = validate_keys(key)
    fields = {
        "tin": taxpayer.tin,
        "rob": taxpayer.rob,
        "codes": " ".join(validate_known(scopes, scopes_to_ask_for(), _("scope"))),
        "valid_until": validate_end(valid_until, _("the system user"), at),
        "name": validate_text(name, _("a name"), MAX_NAME_LENGTH),
        "public_jwk": public.jwk,
        "own_reference": validate_reference(own_reference),
        "return_address": return_address and validate_return_addresses([return_address]),
    }
    is_open = PermissionRequest.objects.filter(intermediary=None, state=OPEN, expires_at__gte=at)
    if present := is_open.filter(**fields).first():
        return present
    from_here, to_it = Q(source=source), Q(tin=taxpayer.tin, rob=taxpayer.rob)
    counted = is_open.aggregate(
        all=Count("pk"),
        address=Count("pk", filter=from_here),
        taxpayer=Count("pk", filter=to_it),
        both=Count("pk", filter=from_here & to_it),
    )
    if any(counted[name] >= most for name, most in MOST_OPEN.items()):
        raise ServiceError(
            "Too many connections are open from this address or for this taxpayer. Have them"
            " approved or declined, or withdraw them, before you ask again."
        )
    context = ChangeContext(actions.ASK_CONNECTION, **asked)
    return store_request(fields, context, LIFETIME, source=source)


def scopes_to_ask_for() -> list[str]:
    """Those of the e-invoicing API. Every other scope is given by staff."""
    audience = settings.SCOPES.get(DEFAULT_SCOPE, {}).get("audience")
    return [name for name, scope in settings.SCOPES.items() if scope["audience"] == audience]
