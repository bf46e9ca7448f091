"""Every step of a login, from top to bottom, without any input or output (specification 4).

Throttle → recall or read → authenticate, decide, sign → record → answer. A login decides from what
this node knows, and the statement that records it confirms that nothing has changed; if it does
not, `_start_again` says what follows. How the steps are run: `tokens/operations/steps.py`.
"""

from collections.abc import Callable, Generator
from typing import Any

from taxpayers.facts.values import Reading
from taxpayers.rules import Refused
from tokens.answers.response import Ended, issued_answer, refused_answer
from tokens.calls import (
    Call,
    CountedLogin,
    ProofUsedBefore,
    TakenIndex,
    TakeStatusIndex,
    TokenRevocation,
)
from tokens.client_auth.methods import facts_query
from tokens.login_settings import login_settings
from tokens.metrics import ISSUED
from tokens.operations.denials import (
    check_limit,
    check_rejections,
    check_throttle,
    record_rejection,
)
from tokens.operations.node import Node
from tokens.operations.recent_writes import recent_writes
from tokens.operations.recording import issued_call, record, refused_call, unreadable_call
from tokens.operations.stages import (
    TERMS,
    Decision,
    IssuedLogin,
    Login,
    Recorded,
    Start,
    Terms,
    with_status,
)
from tokens.operations.steps import LockedRead, StepsTo, refusal_of
from tokens.operations.toolkit import LoginRequest, TokenIssuer
from tokens.rate_limits.quota import Quota
from tokens.rate_limits.throttle import RateLimited, ThrottleCause
from tokens.refusals.table import ProtocolReason
from tokens.request.arrival import Arrival
from tokens.request.token_request import (
    RawTokenRequest,
    TokenRequest,
    UnreadableRequest,
    read_token_request,
    recognize,
)
from tokens.status_lists.assignment import NONE_RESERVED, NoStatusIndex
from tokens.uptime import uptime

_server = TokenIssuer()

# Of four decisions, the last one under the lock, each may need that an index is ended and another
# one taken before. See `_start_again`.
_ROUNDS = 12


class EndedLogin(Ended):
    """Who asked, how it ended (ISSUED, or the reason of the refusal), and the answer."""

    sent: TokenRequest | UnreadableRequest
    throttled_for: ThrottleCause | None = None  # of what there was too much


Steps = StepsTo[EndedLogin]
TermsOf = Callable[[Arrival, TokenRequest], Terms]


def log_in(
    node: Node,
    arrival: Arrival,
    raw: RawTokenRequest,
    terms_of: TermsOf = lambda arrival, asked: TERMS,
) -> Steps:
    """The steps of one login, which never raise; `terms_of` comes first and may raise Refused."""
    own, repeated = login_settings(), node.repeated_requests
    try:
        asked = repeated.find(raw) or read_token_request(
            raw, notation=own.notation, environment=own.environment, issuer=own.issuer
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        return (yield from _refuse_unreadable(node, arrival, raw, refusal_of(arrival, error)))
    decision: Decision | None = None
    try:
        query = facts_query(asked.credentials, asked.on_behalf_of)
        login = Login(node, arrival, asked, query, terms_of(arrival, asked))
        check_throttle(login)
        start = Start(node.recall(query), node.reserved_indexes)
        while True:
            reading = start.reading or (yield from _read(login, start))
            decision = _decide(login, start, reading)
            _learn(login, decision)
            result = yield from record(login, decision)
            if isinstance(result, Recorded):
                if decision.call is not None:
                    recent_writes.stored()
                return _answer(login, result)
            start = yield from _start_again(login, start, decision, result)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        refused = refusal_of(arrival, error)
        if isinstance(refused, RateLimited):
            repeated.remember(raw, asked)
        return _refuse(arrival, asked, decision, refused)


def _refuse_unreadable(
    node: Node, arrival: Arrival, raw: RawTokenRequest, refused: Refused
) -> Steps:
    sent = UnreadableRequest()
    try:
        check_rejections(node, arrival)
        sent = recognize(raw, login_settings().notation)
        yield from record_rejection(node, arrival, unreadable_call(arrival, sent, refused))
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        refused = refusal_of(arrival, error)
    return _refuse(arrival, sent, None, refused)


def _read(login: Login, start: Start) -> Generator[Call | LockedRead, Any, Reading]:
    """What the registry knows now."""
    before, query = uptime(), login.query
    reading: Reading = yield LockedRead(query) if start.is_locked else query
    login.node.clock.observe(before, reading.at, uptime())
    login.node.clock.check()
    return reading


def _decide(login: Login, start: Start, reading: Reading) -> Decision:
    """Authenticate the client, decide, sign: the order of the toolkit's server."""
    request = LoginRequest(login, start, reading)
    try:
        issued = _server.issue(request)
    except NoStatusIndex as missing:
        return Decision(reading, request.client, None, missing.call)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        refused = refusal_of(login.arrival, error)
        call = refused_call(login, request.client, refused, reading.at)
        return Decision(reading, request.client, refused, call)
    return Decision(reading, issued.client, issued, issued_call(login, issued))


def _learn(login: Login, decision: Decision) -> None:
    """What was read is known at the next login, but only of a client that has proved itself."""
    reading, outcome = decision.reading, decision.outcome
    is_news = not reading.is_remembered
    if isinstance(outcome, IssuedLogin) and outcome.index.new is not None:
        reading, is_news = with_status(reading, outcome.index.status), True
    if is_news and outcome is not None and decision.client is not None:
        login.node.learn(login.query, reading)


def _answer(login: Login, recorded: Recorded) -> EndedLogin:
    arrival, decision, outcome = login.arrival, recorded.decision, recorded.decision.outcome
    if isinstance(outcome, Refused):
        return _refuse(arrival, login.asked, decision, outcome, recorded.quota)
    assert outcome is not None  # noqa: S101 - or it was not recorded
    answer = issued_answer(
        arrival.reference,
        decision.reading.at,
        outcome.body,
        outcome.token.authorization.subject,
        outcome.client,
        recorded.quota,
        login.terms.lifetime,
    )
    return EndedLogin(ISSUED, answer, login.asked)


def _refuse(
    arrival: Arrival,
    sent: TokenRequest | UnreadableRequest,
    decision: Decision | None,
    refused: Refused,
    quota: Quota | None = None,
) -> EndedLogin:
    """The end of a login that gets no token, with what is known of its client by then."""
    at, client = (decision.reading.at, decision.client) if decision else (arrival.at, None)
    answer = refused_answer(arrival.reference, at, refused, client, quota)
    cause = refused.cause if isinstance(refused, RateLimited) else None
    return EndedLogin(refused.reason, answer, sent, cause)


def _start_again(
    login: Login, start: Start, decision: Decision, result: ProofUsedBefore | None
) -> Generator[Call | LockedRead, Any, Start]:
    """What a login whose decision was not recorded starts again with: most often a new reading.

    Raises Refused after so many rounds, and if it was not confirmed while its client was locked.
    """
    if start.rounds == _ROUNDS:
        raise Refused(ProtocolReason.TEMPORARILY_UNAVAILABLE)
    again = start._replace(reading=None, rounds=start.rounds + 1)
    if isinstance(decision.call, CountedLogin):
        # The client has changed, has reached its limit, or is being changed at this moment; or its
        # proof was used, or the index of its token is not free, after a backup was restored.
        was_used = start.is_proof_used or isinstance(result, ProofUsedBefore)
        return _after_change(again._replace(reserved=NONE_RESERVED, is_proof_used=was_used))
    if decision.reading.is_remembered:
        return again
    return (yield from _take_index(login, again, decision))


def _take_index(
    login: Login, again: Start, decision: Decision
) -> Generator[Call | LockedRead, Any, Start]:
    """The first token of an index, and one that may do more, takes it; or a former one is ended."""
    check_limit(login, decision)  # who is over it writes nothing
    assert isinstance(decision.call, TakeStatusIndex | TokenRevocation)  # noqa: S101 - see Decision
    taken: TakenIndex | None = yield decision.call
    if taken is None:
        return again
    login.node.reserved_indexes.add(taken)
    if taken.status is None:
        return _after_change(again)
    if again.is_locked:  # no longer: the lock ended with the call
        return again
    return again._replace(reading=with_status(decision.reading, taken.status))


def _after_change(again: Start) -> Start:
    if again.is_locked:
        raise Refused(ProtocolReason.TEMPORARILY_UNAVAILABLE)
    return again._replace(changes=again.changes + 1)
