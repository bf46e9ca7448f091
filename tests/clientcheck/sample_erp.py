"""Sample ERP systems without a network: one that does everything right, and one for each fault."""

import json
import random
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import urlencode

from clientcheck.clientcheck import (
    CLIENT_ID,
    FORM,
    NEW_SECRET,
    OWN,
    REPRESENTED,
    SECRET,
    Answer,
    Authority,
    Request,
)

TAXPAYERS = (OWN, *REPRESENTED)
STEP = 2.0  # seconds between two rounds of documents


@dataclass
class Stored:
    """A token, when to replace it, and when it ends, both by its own clock."""

    text: str
    renew_at: float
    ends_at: float
    tries: int = 0


@dataclass(eq=False)
class GoodErp:
    """Sends documents of three taxpayers, for one of which it needs no onbehalfof."""

    authority: Authority
    now: float = 1_800_000_000.25
    secret: str = SECRET
    tokens: dict[str, Stored] = field(default_factory=dict)
    stopped_until: float = 0.0
    log: list[str] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311

    patience: ClassVar[float] = 30.0  # seconds that it waits for an answer
    keeps_its_token: ClassVar[bool] = True

    def work(self, seconds: float) -> None:
        """A document of each taxpayer every two seconds, for so long."""
        ends_at = self.now + seconds
        while self.now < ends_at:
            for taxpayer in TAXPAYERS:
                self.send_document(taxpayer)
            self.now += STEP

    def send_document(self, taxpayer: str) -> None:
        token = self.token_for(taxpayer)
        if token and self.call(token, taxpayer).status == 401:
            self.tokens.pop(taxpayer, None)
            token = self.token_for(taxpayer)
            if token:
                self.call(token, taxpayer)

    def token_for(self, taxpayer: str) -> str:
        stored = self.tokens.get(taxpayer)
        if stored is None or self.now >= stored.renew_at:
            self.log_in(taxpayer)
        stored = self.tokens.get(taxpayer)
        return stored.text if stored and self.now < stored.ends_at else ""

    def log_in(self, taxpayer: str) -> None:
        """Until it has a token that is good, or a person must do something."""
        if self.now < self.stopped_until:
            return
        old = self.tokens.get(taxpayer)
        for tries in range(old.tries if old else 0, 6):
            answer = self.ask(taxpayer)
            if answer.status == 200:
                self.store(taxpayer, json.loads(answer.body))
                return
            if answer.status == 400:
                self.show(taxpayer, answer)
                return
            if answer.status:
                self.log.append(json.loads(answer.body)["error_description"])
            pause = self.pause(answer, tries)
            if self.keeps_its_token and old and answer.status and self.now < old.ends_at:
                old.renew_at, old.tries = self.now + pause, tries + 1
                return
            self.now += pause

    def ask(self, taxpayer: str) -> Answer:
        """One login, as long as it is patient; it takes a tenth of a second, or longer."""
        answer = self.post(self.form(), self.headers(taxpayer))
        self.now += 0.1 + min(answer.delay, self.patience)
        return answer if answer.delay <= self.patience else Answer(0, "", {}, b"")

    def form(self) -> dict[str, str]:
        return {
            "grant_type": "client_credentials",
            "client_id": CLIENT_ID,
            "client_secret": self.secret,
        }

    def headers(self, taxpayer: str) -> list[tuple[str, str]]:
        return [] if taxpayer == OWN else [("onbehalfof", taxpayer)]

    def post(self, form: dict[str, str], headers: list[tuple[str, str]]) -> Answer:
        sent = [("Content-Type", FORM), *headers]
        body = urlencode(form).encode()
        return self.authority.handle(Request("POST", "/connect/token", "", sent, body, self.now))

    def store(self, taxpayer: str, body: dict[str, object]) -> None:
        seconds = body["expires_in"]
        assert isinstance(seconds, int)
        self.tokens[taxpayer] = Stored(
            str(body["access_token"]), self.now + self.share() * seconds, self.now - 1 + seconds
        )

    def share(self) -> float:
        """After which part of its time a token is renewed."""
        return self.chance.uniform(0.52, 0.88)

    def show(self, taxpayer: str, answer: Answer) -> None:
        """Somebody reads it, and enters the new secret within a minute."""
        self.log.append(json.loads(answer.body)["error_description"])
        self.tokens.pop(taxpayer, None)
        self.stopped_until = self.now + 60
        self.secret = NEW_SECRET

    def pause(self, answer: Answer, tries: int) -> float:
        least = float(answer.headers.get("Retry-After", 2))
        return least * 2.0**tries * (1 + self.chance.random() / 4)

    def call(self, token: str, taxpayer: str) -> Answer:
        headers = [("Authorization", f"Bearer {token}")]
        body = json.dumps({"supplier": taxpayer.partition(":")[0]}).encode()
        return self.authority.handle(
            Request("POST", "/api/v1/documents", "", headers, body, self.now)
        )


class LogsInForEachCall(GoodErp):
    def token_for(self, taxpayer: str) -> str:
        self.tokens.pop(taxpayer, None)
        return super().token_for(taxpayer)


class OneTokenForAll(GoodErp):
    """Its cache is keyed by the client alone."""

    def send_document(self, taxpayer: str) -> None:
        token = self.token_for(REPRESENTED[0])
        if token and self.call(token, taxpayer).status == 401:
            self.tokens.clear()


class ForgetsOnBehalfOf(GoodErp):
    def headers(self, taxpayer: str) -> list[tuple[str, str]]:
        return []


class StaleOnBehalfOf(GoodErp):
    """The header stays on the HTTP client that all logins share."""

    left: str = ""

    def headers(self, taxpayer: str) -> list[tuple[str, str]]:
        self.left = self.left if taxpayer == OWN else taxpayer
        return [("onbehalfof", self.left)] if self.left else []


class MisspellsOnBehalfOf(GoodErp):
    def headers(self, taxpayer: str) -> list[tuple[str, str]]:
        return [("On-Behalf-Of", taxpayer)]


class RenewsTooLate(GoodErp):
    def store(self, taxpayer: str, body: dict[str, object]) -> None:
        super().store(taxpayer, body)
        self.tokens[taxpayer].renew_at = self.tokens[taxpayer].ends_at = self.now + 3600


class RenewsAtTheSameMoment(GoodErp):
    def share(self) -> float:
        return 0.85


class WaitsForTheLogin(GoodErp):
    keeps_its_token = False


class IgnoresA401(GoodErp):
    def send_document(self, taxpayer: str) -> None:
        token = self.token_for(taxpayer)
        if token:
            self.call(token, taxpayer)


class IgnoresRetryAfter(GoodErp):
    def pause(self, answer: Answer, tries: int) -> float:
        return 0.3 if answer.status == 429 else super().pause(answer, tries)


class NeverWaitsLonger(GoodErp):
    def pause(self, answer: Answer, tries: int) -> float:
        return (
            5 + self.chance.random() / 8 if answer.status == 503 else super().pause(answer, tries)
        )


class HammersAfterA503(GoodErp):
    def pause(self, answer: Answer, tries: int) -> float:
        return 0.57 if answer.status == 503 else super().pause(answer, tries)


class HasNoRandomPart(GoodErp):
    keeps_its_token = False

    def pause(self, answer: Answer, tries: int) -> float:
        if answer.status != 503:
            return super().pause(answer, tries)
        return 5.0 * 2.0**tries - 0.1  # the tenth of a second that a login takes


class TrustsTheClockOfTheToken(GoodErp):
    def store(self, taxpayer: str, body: dict[str, object]) -> None:
        super().store(taxpayer, body)
        stored = self.tokens[taxpayer]
        for token in self.authority.tokens.values():
            if token.text == stored.text and token.is_skewed:
                stored.renew_at = self.now  # as who compares exp with its own clock


class IsImpatient(GoodErp):
    patience = 2.0

    def pause(self, answer: Answer, tries: int) -> float:
        return 0.1 if answer.status == 0 else super().pause(answer, tries)


class FloodsAfterACut(GoodErp):
    def ask(self, taxpayer: str) -> Answer:
        answer = super().ask(taxpayer)
        if answer.is_cut:
            for _ in range(3):
                answer = super().ask(taxpayer)
        return answer


class RepeatsWhatWasRefused(GoodErp):
    def show(self, taxpayer: str, answer: Answer) -> None:
        self.log.append(json.loads(answer.body)["error_description"])


class SecretInTheUrl(GoodErp):
    def post(self, form: dict[str, str], headers: list[tuple[str, str]]) -> Answer:
        return self.authority.handle(
            Request(
                "POST", "/connect/token", urlencode(form), [("Content-Type", FORM)], b"", self.now
            )
        )


class SendsJson(GoodErp):
    def post(self, form: dict[str, str], headers: list[tuple[str, str]]) -> Answer:
        sent = [("Content-Type", "application/json"), *headers]
        body = json.dumps(form).encode()
        return self.authority.handle(Request("POST", "/connect/token", "", sent, body, self.now))


class LogsItsSecret(GoodErp):
    def form(self) -> dict[str, str]:
        form = super().form()
        self.log.append(f"login with {form}")
        return form


class ThrowsTheErrorAway(GoodErp):
    def show(self, taxpayer: str, answer: Answer) -> None:
        super().show(taxpayer, answer)
        self.log[-1] = "400 Client Error: Bad Request for url"
