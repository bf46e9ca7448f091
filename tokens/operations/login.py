"""Every step of a login, in order, without any input or output (specification 4, contract 1).

A login decides from what this node knows, and the statement that records it confirms that nothing
has changed. How the steps are run: `tokens/operations/steps.py`.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from taxpayers.facts.values import Reading, StatusFacts
from taxpayers.identifiers import Notation
from taxpayers.rules import Refused, RegistryReason
from tokens.answers.response import Answer, Ended, issued_answer, refused_answer
from tokens.calls import (
    Call,
    CountedLogin,
    CountResult,
    FailedLogin,
    ProofUsedBefore,
    RejectedRequest,
    TakenIndex,
    UsedBefore,
    Write,
)
from tokens.client_auth.authenticated import SECRET_METHODS, AuthenticatedClient
from tokens.client_auth.credentials import facts_query
from tokens.client_auth.private_key_jwt import USED_BEFORE, not_accepted
from tokens.lifetime import TOKEN_LIFETIME
from tokens.metrics import ISSUED
from tokens.operations.denials import (
    check_limit,
    check_rejections,
    check_throttle,
    record_rejection,
    throttled,
)
from tokens.operations.node import Node
from tokens.operations.recording import issued_call, refused_call, unreadable_call
from tokens.operations.steps import LockedRead, StepsTo, refusal_of
from tokens.operations.toolkit import IssuedLogin, LoginRequest, TokenIssuer
from tokens.rate_limits.quota import CounterState, Quota, count_login, current_quota
from tokens.rate_limits.throttle import RateLimited, Throttle, ThrottleCause
from tokens.refusals.table import ProtocolReason
from tokens.request.arrival import Arrival
from tokens.request.token_request import (
    RawTokenRequest,
    TokenRequest,
    UnreadableRequest,
    read_token_request,
    recognize,
)
from tokens.status_lists.assignment import NoStatusIndex
from tokens.status_lists.reserved import NONE_RESERVED
from tokens.uptime import uptime

issuer = TokenIssuer()

# So often a login is decided again without a lock. A client that changes all the time is locked
# then, and nothing can change any more.
_TRIES_WITHOUT_LOCK, _TRIES = 2, 4
# What is remembered is read, an index of tokens that may do more than they should is ended, another
# one taken, which may be such an index again; twice in vain, and once under the lock.
_INDEX_CALLS = 8


@dataclass(frozen=True, slots=True)
class EndedLogin(Ended):
    """Who asked, how it ended (ISSUED, or the reason of the refusal), and the answer.

    `throttled_for` is of what there was too much, where a limit refused it.
    """

    sent: TokenRequest | UnreadableRequest
    throttled_for: ThrottleCause | None = None


Steps = StepsTo[EndedLogin]
Outcome = IssuedLogin | Refused


def log_in(node: Node, arrival: Arrival, raw: RawTokenRequest) -> Steps:
    """The steps of one login. They never raise: whatever happens, the client gets an answer."""
    return log_in_as(Login, node, arrival, raw)


def log_in_as(kind: type["Login"], node: Node, arrival: Arrival, raw: RawTokenRequest) -> Steps:
    """As `log_in`, with the steps of another kind of login: the sandbox has one."""
    notation = Notation(settings.TIN_PATTERN, settings.ROB_PATTERN)
    try:
        asked = read_token_request(
            raw,
            notation=notation,
            environment=settings.ENVIRONMENT,
            issuer=settings.AUTH_URL,
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        refused = refusal_of(arrival, error)
        return (yield from _refuse_unreadable(node, arrival, raw, notation, refused))
    login = kind(node, arrival, asked)
    try:
        return (yield from login.steps())
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        return login.refuse(refusal_of(arrival, error))


def _refuse_unreadable(
    node: Node, arrival: Arrival, raw: RawTokenRequest, notation: Notation, refused: Refused
) -> Steps:
    sent = UnreadableRequest()
    try:
        check_rejections(node, arrival)
        sent = recognize(raw, notation)
        yield from record_rejection(node, arrival, unreadable_call(arrival, sent, refused))
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
        refused = refusal_of(arrival, error)
    return _refused_login(sent, refused, refused_answer(arrival.id, arrival.at, refused))


def _refused_login(
    sent: TokenRequest | UnreadableRequest, refused: Refused, answer: Answer
) -> EndedLogin:
    cause = refused.cause if isinstance(refused, RateLimited) else None
    return EndedLogin(refused.reason, answer, sent, cause)


class Login:
    """One login whose request could be read."""

    token_lifetime = TOKEN_LIFETIME

    def __init__(self, node: Node, arrival: Arrival, asked: TokenRequest) -> None:
        self.node = node
        self.arrival = arrival
        self.asked = asked
        self.query = facts_query(asked.credentials, asked.on_behalf_of)
        self.at = arrival.at
        self.client: AuthenticatedClient | None = None
        self.is_proof_used = False
        self.reserved = node.reserved_indexes

    def steps(self) -> Steps:
        """Decide and record, until what was decided is confirmed."""
        check_throttle(self.node, self.arrival, self.asked)
        reading = self.node.recall(self.query)
        for tries in range(_TRIES):
            is_locked = tries > _TRIES_WITHOUT_LOCK
            if reading is None or tries:
                reading = yield from self._read(locked=is_locked)
            reading, outcome = yield from self._decide_with_index(reading, locked=is_locked)
            call = self._call(outcome)
            if isinstance(call, CountedLogin):
                self._check_limit(reading)
                counted: CountResult = yield call
                if isinstance(counted, Quota):
                    return self._end(outcome, counted)
                if isinstance(counted, UsedBefore):
                    return (yield from self._refuse_used_assertion(reading))
                # It is decided again, as that of a client without a right proof.
                self.is_proof_used |= isinstance(counted, ProofUsedBefore)
                # Or the client has changed, reached its limit, or is being changed at this moment;
                # or the index of its token is not free, after a backup was restored.
                self.reserved = NONE_RESERVED
            elif not reading.is_remembered:
                return (yield from self._record_uncounted(outcome, call, reading))
            # A failure has no epoch that confirms it, so it is never decided from memory.
        raise Refused(ProtocolReason.TEMPORARILY_UNAVAILABLE)

    def _refuse_used_assertion(self, reading: Reading) -> Steps:
        """Somebody has its assertion, or it makes one for several logins: it proves nothing now."""
        refused = not_accepted(USED_BEFORE)
        call = refused_call(self.arrival, self.asked, self.client, refused, self.at)
        self.client = None
        assert isinstance(call, FailedLogin)  # noqa: S101 - as the table says of this reason
        return (yield from self._record_uncounted(refused, call, reading))

    def _record_uncounted(
        self, outcome: Outcome, call: FailedLogin | RejectedRequest | None, reading: Reading
    ) -> Steps:
        if isinstance(call, RejectedRequest):
            check_rejections(self.node, self.arrival)
            yield from record_rejection(self.node, self.arrival, call)
        elif call is not None:
            throttle: Throttle | None = yield call
            if throttle is not None:
                raise self._throttled(throttle, may_succeed=_may_succeed(outcome))
        return self._end(outcome, self._quota(reading))

    def _read(self, *, locked: bool) -> Generator[Call | LockedRead, Any, Reading]:
        before = uptime()
        reading: Reading = yield LockedRead(self.query) if locked else self.query
        self.node.clock.observe(before, reading.at, uptime())
        self.node.clock.check()
        return reading

    def _decide_with_index(
        self, reading: Reading, *, locked: bool
    ) -> Generator[Call | LockedRead, Any, tuple[Reading, Outcome]]:
        """As `_decide`; the first token of an index, and one that may do more, takes it before."""
        tries = 0
        for _ in range(_INDEX_CALLS):
            try:
                outcome = self._decide(reading)
            except NoStatusIndex as error:
                missing = error
            else:
                return self._learn(reading, outcome), outcome
            status: StatusFacts | None = None
            if not reading.is_remembered:
                self._check_limit(reading)  # who is over it writes nothing
                taken: TakenIndex | None = yield missing.call
                if taken is not None:
                    self.node.reserved_indexes.add(taken)
                    status = taken.status
                    tries += status is None  # the client is being changed
                    locked = locked or tries >= _TRIES_WITHOUT_LOCK  # in the end it is locked
            if status is None or locked:
                reading = yield from self._read(locked=locked)
            else:
                reading = _with_status(reading, status)
        raise Refused(ProtocolReason.TEMPORARILY_UNAVAILABLE)

    def _learn(self, reading: Reading, outcome: Outcome) -> Reading:
        is_news = not reading.is_remembered
        if isinstance(outcome, IssuedLogin) and outcome.index.new is not None:
            reading, is_news = _with_status(reading, outcome.index.status), True
        # Nobody but a client that has proved itself can fill the memory of this node.
        if is_news and self.client is not None:
            self.node.learn(self.query, reading)
        return reading

    def _decide(self, reading: Reading) -> Outcome:
        """Authenticate the client, decide, sign. Raises NoStatusIndex."""
        login = LoginRequest(
            self.arrival,
            self.asked,
            reading,
            reserved=self.reserved,
            is_proof_used=self.is_proof_used,
            lifetime=self.token_lifetime,
        )
        self.at = reading.at
        try:
            return issuer.issue(login)
        except NoStatusIndex:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            return refusal_of(self.arrival, error)
        finally:
            self.client = login.client

    def _call(self, outcome: Outcome) -> Write | None:
        if isinstance(outcome, IssuedLogin):
            return issued_call(
                self.arrival, self.asked, outcome.client, outcome.token, outcome.index
            )
        return refused_call(self.arrival, self.asked, self.client, outcome, self.at)

    def _check_limit(self, reading: Reading) -> None:
        if self.client is None:
            return
        if reading.counter is None:
            if self.client.method not in SECRET_METHODS:
                check_limit(self.node, self.arrival, self.asked)
            return
        limit = self.client.client.logins_per_minute
        outcome = count_login(CounterState(*reading.counter), limit, reading.at)
        if isinstance(outcome, Throttle):
            raise self._throttled(outcome)

    def _throttled(self, throttle: Throttle, *, may_succeed: bool = False) -> Refused:
        return throttled(
            self.node, self.arrival, self.asked, self.client, throttle, may_succeed=may_succeed
        )

    def _quota(self, reading: Reading) -> Quota | None:
        if self.client is None or reading.counter is None:
            return None
        limit = self.client.client.logins_per_minute
        return current_quota(CounterState(*reading.counter), limit, reading.at)

    def _end(self, outcome: Outcome, quota: Quota | None) -> EndedLogin:
        if isinstance(outcome, Refused):
            return self.refuse(outcome, quota)
        represented = outcome.token.authorization.subject
        answer = issued_answer(
            self.arrival.id, self.at, outcome.body, represented, outcome.client, quota
        )
        return EndedLogin(ISSUED, answer, self.asked)

    def refuse(self, refused: Refused, quota: Quota | None = None) -> EndedLogin:
        """The end of a login that gets no token."""
        answer = refused_answer(self.arrival.id, self.at, refused, self.client, quota)
        return _refused_login(self.asked, refused, answer)


def _with_status(reading: Reading, status: StatusFacts) -> Reading:
    assert reading.facts is not None  # noqa: S101 - without facts there is no decision
    return replace(reading, facts=replace(reading.facts, status=status))


def _may_succeed(outcome: Outcome) -> bool:
    """Whether the secret is right, and would log in once the address is among its networks."""
    return (
        isinstance(outcome, Refused) and outcome.reason == RegistryReason.SOURCE_NETWORK_NOT_ALLOWED
    )
