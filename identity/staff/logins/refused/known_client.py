"""What staff may know of a client whose credentials were wrong; the client itself is not told."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from identity.staff.framework.badges import Badge, badge_of_credential
from identity.staff.logins.refused.involved import Involved
from identity.staff.logins.refused.latest_logins import MAX_LOGINS, LatestLogins
from taxpayers.models import Credential, SystemUser
from taxpayers.rules import RegistryReason
from tokens.refusals.table import ProtocolReason

LATELY = timedelta(hours=24)
_REASONS = (
    ProtocolReason.MALFORMED_CREDENTIALS,
    ProtocolReason.INVALID_CREDENTIALS,
    RegistryReason.SECRET_EXPIRED,
    RegistryReason.SECRET_REVOKED,
)


@dataclass(frozen=True, slots=True)
class KnownClient:
    """`system_user` is None if no client has this ID.

    `refusals` are the refused logins under the ID in the last 24 hours, from so many `addresses`;
    there may be more if `is_capped`. `last_token_at` is None if none of its latest logins got one;
    `has_older`: there are logins before these.
    """

    client_id: str
    system_user: SystemUser | None
    last_token_at: datetime | None
    has_older: bool
    refusals: int
    addresses: int
    is_capped: bool
    live_secrets: list[tuple[Credential, Badge]]

    @property
    def max_logins(self) -> int:
        """How many of its latest logins were read at most."""
        return MAX_LOGINS


def known_client(involved: Involved, latest: LatestLogins, at: datetime) -> KnownClient | None:
    """The client with the ID that was sent; None if something else than credentials was wrong."""
    event, user = involved.event, involved.system_user
    if event.reason not in _REASONS or not event.client_id:
        return None
    refused = latest.refused_since(at - LATELY)
    live = user.usable_credentials.filter(slot__isnull=False).order_by("-pk") if user else []
    return KnownClient(
        client_id=event.client_id,
        system_user=user,
        last_token_at=latest.last_token_at,
        has_older=latest.has_more,
        refusals=len(refused),
        addresses=len({row.source_address for row in refused}),
        is_capped=latest.has_more and latest.rows[-1].at >= at - LATELY,
        live_secrets=[
            (secret, badge_of_credential(secret, at)) for secret in live if secret.is_live(at)
        ],
    )
