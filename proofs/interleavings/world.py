"""The taxpayers, clients and permissions that a run begins with, and the credentials it uses."""

from datetime import datetime, timedelta
from random import Random
from typing import Any

from proofs.interleavings.oracle.registry import Registry
from taxpayers.client_keys import key_name
from taxpayers.credentials import hash_secret, new_client_id, new_client_secret
from taxpayers.identifiers import TaxpayerId
from tests.client_auth.key_erp import KeyPair
from tests.support import make
from tests.support.factories import (
    ENVIRONMENT,
    SUBMIT,
    VIEW,
)

UNKNOWN = TaxpayerId("TUNKNOWN1")
SCOPES = ("InvoicingAPI", "ReportingAPI", "ArchiveAPI")
CODES = (SUBMIT, VIEW, "documents:cancel")
_MOST = 10  # of the latest that logins try, whether they are of the client or not


def lookup_of(credential: str | KeyPair) -> str:
    return hash_secret(credential) if isinstance(credential, str) else key_name(credential.kid)


class Credentials:
    """Every secret that was ever issued in the run, and the key of every connection, in clear."""

    def __init__(self) -> None:
        self._by_lookup: dict[str, str | KeyPair] = {}
        # Never issued: an id and a secret.
        self.unknown = (new_client_id(ENVIRONMENT), new_client_secret(ENVIRONMENT))

    def add(self, credential: str | KeyPair) -> None:
        self._by_lookup[lookup_of(credential)] = credential

    def choose(self, rng: Random, registry: Registry, client: int, now: datetime) -> str | KeyPair:
        """Mostly one that the registry knows, sometimes one of the latest of all clients."""
        present = [row for row in registry.credentials if row.system_user_id == client]
        live = [row for row in present if row.is_live(now)]
        chosen = rng.random()
        if live and chosen < 0.75:
            return self._by_lookup[live[-1].lookup]
        if present and chosen < 0.94:
            return self._by_lookup[rng.choice(present).lookup]
        return (
            rng.choice([*self._by_lookup.values()][-_MOST:]) if chosen < 0.98 else self.unknown[1]
        )


def populate(credentials: Credentials, at: datetime) -> None:
    """Two intermediaries, two others, and taxpayers that they may represent."""
    first, second = (make.intermediary(taxpayer__tin=f"TINTER{number}") for number in (1, 2))
    plain = make.taxpayer(tin="TPLAIN1")
    with_rob = make.taxpayer(tin="TPLAIN1", rob="ROB-1")
    represented = [
        make.taxpayer(tin="TREPR1"),
        make.taxpayer(tin="TREPR1", rob="ROB-7"),
        make.taxpayer(tin="TREPR2"),
    ]
    owners = (first.taxpayer, first.taxpayer, second.taxpayer, plain, with_rob)
    for number, owner in enumerate(owners):
        secret: Any = make.credential(
            system_user__taxpayer=owner,
            system_user__name=f"ERP {number}",
            system_user__scopes=" ".join(SCOPES[:2]),
            system_user__logins_per_minute=30,
            created_at=at - timedelta(days=60),
        )
        credentials.add(secret.clear)
    granted = [(taxpayer, first, [SUBMIT]) for taxpayer in (*represented, plain)]
    for taxpayer, intermediary, codes in (*granted, (represented[0], second, CODES)):
        make.permission(
            taxpayer=taxpayer,
            intermediary=intermediary,
            codes=codes,
            valid_from=at - timedelta(days=90),
        )
