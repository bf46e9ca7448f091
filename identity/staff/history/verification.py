"""Is the history unbroken, and is each record what its history says? (contract 5)"""

from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice

from identity.staff.models import StaffAccount
from identity.webhooks.publishing import publish_all_changes
from taxpayers.models import HistoryCheck
from taxpayers.services.feed.chain import Chain, verify_chain
from taxpayers.standing.differences import COMPARED, Compared
from tokens.models import ProtectedApi

MOST_NAMED = 100  # differing records


@dataclass(frozen=True, slots=True)
class Verification:
    """`differences`: the first MOST_NAMED of them, a sentence each."""

    chain: Chain
    differences: tuple[str, ...]

    @property
    def fault(self) -> str:
        """Empty if all is as it was recorded."""
        return "\n".join(filter(None, (self.chain.fault, *self.differences)))


ACCOUNTS = Compared(
    StaffAccount,
    ("is_active",),
    lambda row: {
        "role": ", ".join([*row.roles, *(extra.codename for extra in row.user_permissions.all())])
    },
    prefetched=("groups", "user_permissions"),
)
PROTECTED_APIS = Compared(ProtectedApi, ("name", "audience", "is_active"))


def verify(at: datetime) -> Verification:
    """Read the whole history and every record, and store what was found.

    What was committed by now gets its place and its hash before.
    """
    publish_all_changes(at)
    verified = verify_chain()
    kinds = (kind.differences() for kind in (*COMPARED, ACCOUNTS, PROTECTED_APIS))
    differences = tuple(islice(chain.from_iterable(kinds), MOST_NAMED))
    found = Verification(verified, differences)
    intact = "" if verified.fault else verified.chain_hash
    HistoryCheck.objects.create(at=at, places=verified.places, chain_hash=intact, fault=found.fault)
    return found
