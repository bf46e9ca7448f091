"""Tokens of a run, and the bits in the status lists that must be set for them (contract 2)."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from proofs.interleavings.logins.login import Login
from proofs.interleavings.oracle.claims import ClaimBroken
from proofs.interleavings.oracle.registry import Registry
from taxpayers.facts.values import Facts, FactsQuery
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import EndedStatusIndex
from tokens.access_tokens.claims import index_of_claims
from tokens.access_tokens.status import ACTIVE, TokenFacts, status_of
from tokens.access_tokens.verification import AccessToken, verify
from tokens.keys.signer import current_key_ring


@dataclass(frozen=True, slots=True)
class _Issued:
    token: AccessToken
    index: int
    system_user_id: int | None
    secret_id: int | None
    on_behalf_of: TaxpayerId | None


class IssuedTokens:
    """Those that a client may still have; of several that say the same, the latest."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[object, ...], _Issued] = {}
        self._restored_in = 0  # a step of the run

    def add(self, login: Login) -> None:
        if login.recorded_in <= self._restored_in:
            return
        issued = _issued(login)
        token = issued.token
        self._tokens[issued.index, token.client_id, token.scopes, token.permissions] = issued

    def forget(self, step: int) -> None:
        """Those recorded until this step: then a backup was restored that lacks them."""
        self._tokens.clear()
        self._restored_in = step

    def check(self, registry: Registry, at: datetime) -> None:
        """Raises ClaimBroken if the bit of a token is not set that is no longer active."""
        ended = set(EndedStatusIndex.objects.values_list("index", flat=True))
        self._tokens = {
            key: issued for key, issued in self._tokens.items() if issued.token.expires_at > at
        }
        for issued in self._tokens.values():
            facts = _facts_now(issued, registry)
            now = status_of(
                issued.token,
                TokenFacts(facts, has_index=True),
                known_scopes=tuple(settings.SCOPES),
                at=at,
            )
            if now != ACTIVE and issued.index not in ended:
                raise ClaimBroken(
                    f"the bit of each token that has ended is set: {now}, {issued} with {facts}"
                )


def _issued(login: Login) -> _Issued:
    event = login.event
    assert event is not None
    audiences = [scope["audience"] for scope in settings.SCOPES.values()]
    ring = current_key_ring(event.at)
    token = verify(login.token, ring, issuer=settings.AUTH_URL, audiences=audiences, at=event.at)
    index = index_of_claims(token.claims)
    assert index is not None
    return _Issued(token, index, event.system_user_id, event.secret_id, login.asked.on_behalf_of)


def _facts_now(issued: _Issued, registry: Registry) -> Facts | None:
    """Those of the same client with the same secret, whatever their id and hash are by now."""
    clients = [row for row in registry.system_users if row.id == issued.system_user_id]
    secrets = [row for row in registry.credentials if row.id == issued.secret_id]
    if not clients or not secrets or secrets[0].system_user_id != clients[0].id:
        return None
    query = FactsQuery(clients[0].client_id, secrets[0].lookup, issued.on_behalf_of)
    return registry.facts(query)
