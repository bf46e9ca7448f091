"""`rotate_signing_key [--alg ES256] [--compromised KID]`: a new signing key (contract 2 and 6)."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from taxpayers.management.command import NO_REASON, Output, ServiceCommand
from taxpayers.moments import format_moment
from taxpayers.services import Author
from tokens.keys import store
from tokens.keys.ring import ALGORITHMS, Key


class Command(ServiceCommand):
    operation = store.ROTATE_SIGNING_KEY
    note = "With --compromised another key is stopped at once, and the new one signs at once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--alg",
            choices=ALGORITHMS,
            default=settings.SIGNING_ALGORITHM,
            help="the algorithm of the new key (%(default)s)",
        )
        parser.add_argument(
            "--compromised",
            metavar="KID",
            help=f"a published key to stop. {store.STOP_COMPROMISED_KEY.effect} For an ID that"
            " begins with a hyphen write --compromised=KID",
        )
        parser.add_argument("--reason", metavar="TEXT", default="", help="for the history")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        alg, kid, reason = options["alg"], options["compromised"], options["reason"]
        if kid is None:
            return _rotated(store.rotate(alg=alg, reason=reason, by=by, at=at), at)
        key = store.stop_compromised_key(kid=kid, alg=alg, reason=reason or NO_REASON, by=by, at=at)
        return _stopped(kid, key, at)


def _rotated(key: Key, at: datetime) -> Output:
    begin = "at once" if store.signs_at_once(key, at) else f"from {format_moment(key.signs_from)}"
    return Output(
        _data(key, at),
        f"The key {key.kid} ({key.alg}) is published and signs {begin}.\n"
        "The old key stays published until the last token that it signed has expired;"
        " there is nothing else to do.",
    )


def _stopped(kid: str, key: Key, at: datetime) -> Output:
    return Output(
        _data(key, at) | {"compromised": kid},
        f"The key {kid} is stopped. Within seconds every node refuses the tokens that it signed.\n"
        f"The new key {key.kid} ({key.alg}) signs from now on.\n"
        "Next: protected APIs have copies of the published keys that are up to five minutes old."
        " Let them read the keys again now, or until then they accept tokens of the stopped key"
        " and may refuse new ones.",
    )


def _data(key: Key, at: datetime) -> dict[str, Any]:
    return {"kid": key.kid, "alg": key.alg, "published_at": at, "signs_from": key.signs_from}
