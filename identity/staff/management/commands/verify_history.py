"""`verify_history`: names the first change that does not fit, and each record that differs."""

from datetime import datetime
from typing import Any

from identity.staff.history.verification import verify
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.moments import format_moment
from taxpayers.services import Author


class Command(ServiceCommand):
    help = (
        "Verify the history: each change carries the hash of the one before. Name the first that"
        " does not fit, and each record that differs from what its history says. Run it every"
        " night; it changes nothing, and exits 1 if anything was found: the first of it on stderr."
    )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        found = verify(at)
        verified = found.chain
        data = {
            "changes": verified.places,
            "begins_at": verified.begins_at,
            "chain_hash": verified.chain_hash,
            "fault": verified.fault,
            "differences": list(found.differences),
        }
        if found.fault:
            first, *more = found.fault.splitlines()
            return Output(data, found.fault, f"{first} And {len(more)} more." if more else first)
        if verified.begins_at is None:
            return Output(data, "The history is empty, and so is the registry.")
        return Output(
            data,
            f"The history is unbroken since {format_moment(verified.begins_at)}: {verified.places}"
            " changes. Every record is what its history says."
            f"\nHash of the last change: {verified.chain_hash}",
        )
