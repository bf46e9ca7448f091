"""What a login of each client of the sandbox would get now: whether staff have changed it."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from identity.sandbox.catalogue import TOKEN, SandboxClient
from taxpayers.credentials import hash_secret
from taxpayers.facts.query import load_facts
from taxpayers.facts.source_networks import LoginSource
from taxpayers.facts.values import FactsQuery
from taxpayers.identifiers import TaxpayerId
from taxpayers.rules import AuthorizationRequest, Refused, RegistryReason, decide

_MISSING = "not registered"
_FROM_ANYWHERE = LoginSource("203.0.113.1")  # RFC 5737: for documentation


@dataclass(frozen=True, slots=True)
class SandboxState:
    """What the registry would answer now, and whether it is what the client is for."""

    gets: str
    is_right: bool


def state_of(client: SandboxClient, at: datetime) -> SandboxState:
    """The decision about a login of this client at the moment `at`."""
    represented = TaxpayerId(client.on_behalf_of) if client.on_behalf_of else None
    lookup = hash_secret(client.credentials.client_secret)
    facts = load_facts(FactsQuery(client.credentials.client_id, lookup, represented)).facts
    if facts is None:
        return SandboxState(_MISSING, is_right=False)
    scopes = tuple(settings.SCOPES)
    try:
        decide(AuthorizationRequest(facts, None, scopes, at, source=_FROM_ANYWHERE))
    except Refused as refused:
        return SandboxState(refused.reason, refused.reason == client.gets)
    # What no state of the registry can do is done for a client that would get a token.
    return SandboxState(TOKEN, client.gets not in set(RegistryReason))
