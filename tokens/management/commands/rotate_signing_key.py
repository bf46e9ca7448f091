"""`rotate_signing_key [--alg ES256]`: publishes a new signing key (contract 2 and 6)."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.moments import format_moment
from taxpayers.services import Author
from tokens.keys.ring import ALGORITHMS
from tokens.keys.store import rotate


class Command(ServiceCommand):
    help = "Publish a new signing key. It starts to sign ten minutes later, without a restart."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--alg",
            choices=ALGORITHMS,
            default=settings.SIGNING_ALGORITHM,
            help="the algorithm of the new key (%(default)s)",
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        key = rotate(alg=options["alg"], by=by, at=at)
        return Answer(
            {"kid": key.kid, "alg": key.alg, "published_at": at, "signs_from": key.signs_from},
            f"The key {key.kid} ({key.alg}) is published and signs from"
            f" {format_moment(key.signs_from)}.\n"
            "The old key stays published until the last token that it signed has expired;"
            " there is nothing else to do.",
        )
