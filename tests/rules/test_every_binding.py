"""A client whose tokens must be bound gets no other one, in whatever state the registry is.

Whatever else is right or wrong about a login: the rule is checked after those of the secret and
before all others, and what a client proves beyond what it must changes nothing but its token.
"""

import pytest
from msgspec.structs import replace

from taxpayers.facts.token_binding import UNBOUND, Confirmation, TokenBinding
from taxpayers.rules import AuthorizationRequest, decide
from tests.rules.states import AT, IN_ORDER, KNOWN_SCOPES, SOURCE, Refusal, facts_of, outcome_of
from tests.rules.test_every_state import right_or_wrong

KEY, CERTIFICATE = (Confirmation(b, "a-thumbprint") for b in (TokenBinding.DPOP, TokenBinding.TLS))
NO_PROOF, NO_CERTIFICATE = Refusal("dpop_proof_missing"), Refusal("certificate_missing")
# What the tokens of the client must be bound to, what it has proved, and the refusal.
CASES: dict[tuple[str, Confirmation], Refusal | None] = {
    ("", UNBOUND): None,
    ("", KEY): None,
    ("", CERTIFICATE): None,
    ("dpop", UNBOUND): NO_PROOF,
    ("dpop", KEY): None,
    ("dpop", CERTIFICATE): NO_PROOF,
    ("tls", UNBOUND): NO_CERTIFICATE,
    ("tls", KEY): NO_CERTIFICATE,
    ("tls", CERTIFICATE): None,
    # An unknown one, written by SQL, is proved by nothing.
    ("other", UNBOUND): NO_PROOF,
    ("other", KEY): NO_PROOF,
    ("other", CERTIFICATE): NO_PROOF,
}
OF_SECRETS = ("secret_expired", "secret_revoked", "source_network_not_allowed")


def request(binding: str, proved: Confirmation) -> AuthorizationRequest:
    facts = facts_of(IN_ORDER)
    bound = replace(facts, client=replace(facts.client, token_binding=binding))
    return AuthorizationRequest(bound, None, KNOWN_SCOPES, AT, proved)


@pytest.mark.parametrize(("binding", "proved"), CASES)
def test_in_every_state_a_token_is_bound_as_it_must_be(binding: str, proved: Confirmation) -> None:
    refusal = CASES[binding, proved]
    for state in right_or_wrong():
        facts = facts_of(state)
        bound = replace(facts, client=replace(facts.client, token_binding=binding))
        plain = AuthorizationRequest(facts, None, KNOWN_SCOPES, AT, source=SOURCE)
        unbound = outcome_of(plain)
        found = outcome_of(replace(plain, facts=bound, confirmation=proved))
        if refusal is None or (isinstance(unbound, Refusal) and unbound.reason in OF_SECRETS):
            assert found == unbound, state
        else:
            assert found == refusal, state


def test_the_token_is_bound_to_what_was_proved() -> None:
    for (binding, proved), refusal in CASES.items():
        if refusal is None:
            assert decide(request(binding, proved)).confirmation == proved
