"""`nightly_webhooks`: what ends soon, requests that expired, old deliveries, the encryption."""

from datetime import datetime
from typing import Any

from identity.webhooks.publishing import publish_all_changes
from identity.webhooks.upkeep import announce_ends, delete_old, give_up_old, renew_encryption
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author
from taxpayers.services.permission_requests import expire_permission_requests


class Command(ServiceCommand):
    help = (
        "Record which requests for permissions have expired; announce to webhooks what ends in 30,"
        " 7 and 1 days; give up and delete old deliveries; encrypt the secrets of webhooks with the"
        " newest key. Safe to repeat."
    )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        expired = expire_permission_requests(by=by, at=at)
        publish_all_changes(at)
        announced = announce_ends(at)
        given_up, deleted = give_up_old(at), delete_old(at)
        lost = ", ".join(map(str, renew_encryption()))
        return Output(
            {"expired": expired, "announced": announced, "given_up": given_up, "deleted": deleted},
            f"Requests expired: {expired}. Ends announced: {announced}. Deliveries given up:"
            f" {given_up}, deleted: {deleted}.",
            lost and f"A secret of {lost} cannot be decrypted: check KEY_ENCRYPTION_KEYS.",
        )
