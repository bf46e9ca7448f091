"""`verify_history`: is the history unbroken, and is each record what it says? (contract 5)"""

from datetime import datetime
from itertools import chain, islice
from typing import Any

from identity.staff.models import StaffAccount
from identity.webhooks.publishing import publish_all_changes
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.models import HistoryCheck
from taxpayers.moments import format_moment
from taxpayers.services import Author
from taxpayers.services.feed.chain import Chain, verify_chain
from taxpayers.standing.differences import COMPARED, Compared
from tokens.models import ProtectedApi

MOST_NAMED = 100  # differing records
ACCOUNTS = Compared(
    StaffAccount,
    ("is_active",),
    lambda row: {
        "role": ", ".join([*row.roles, *(extra.codename for extra in row.user_permissions.all())])
    },
    prefetched=("groups", "user_permissions"),
)
PROTECTED_APIS = Compared(ProtectedApi, ("name", "audience", "is_active"))


def verify(at: datetime) -> tuple[Chain, list[str]]:
    """Read the history and every record, and store what was found; the first differences."""
    publish_all_changes(at)  # what was committed by now gets its place and its hash
    found = verify_chain()
    kinds = (kind.differences() for kind in (*COMPARED, ACCOUNTS, PROTECTED_APIS))
    differences = list(islice(chain.from_iterable(kinds), MOST_NAMED))
    HistoryCheck.objects.create(
        at=at,
        places=found.places,
        chain_hash="" if found.fault else found.chain_hash,
        fault="\n".join(filter(None, (found.fault, *differences))),
    )
    return found, differences


class Command(ServiceCommand):
    help = (
        "Verify the history: each change carries the hash of the one before. Name the first that"
        " does not fit, and each record that differs from what its history says. Run it every"
        " night; it changes nothing, and exits 1 if anything was found: the first of it on stderr."
    )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        verified, differences = verify(at)
        data = {
            "changes": verified.places,
            "begins_at": verified.begins_at,
            "chain_hash": verified.chain_hash,
            "fault": verified.fault,
            "differences": differences,
        }
        if faults := [*filter(None, (verified.fault, *differences))]:
            first, *more = faults
            line = f"{first} And {len(more)} more." if more else first
            return Output(data, "\n".join(faults), line)
        if verified.begins_at is None:
            return Output(data, "The history is empty, and so is the registry.")
        return Output(
            data,
            f"The history is unbroken since {format_moment(verified.begins_at)}: {verified.places}"
            " changes. Every record is what its history says."
            f"\nHash of the last change: {verified.chain_hash}",
        )
