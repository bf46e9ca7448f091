"""`explain_login REFERENCE`: every check of a login, and what to do (contract 6)."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from taxpayers.management.command import Output, ServiceCommand
from taxpayers.models import Credential
from taxpayers.services import Author
from tokens.answers.description import format_moment_with_offset
from tokens.explanation import CheckState, Explanation, explain
from tokens.login_events.reference import CALLER_TEXTS, explain_missing, reference_in
from tokens.models import LoginEvent
from tokens.refusals.table import USED_BEFORE

_MARKS = {
    CheckState.PASSED: "ok",
    CheckState.FAILED: "NO",
    CheckState.NOT_REACHED: " .",
    CheckState.NOT_ASKED: " -",
}


class Command(ServiceCommand):
    help = "Explain the result of a login: every check, passed or failed, and what to do next."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "reference", metavar="REFERENCE", help="the correlationId, or a text that contains it"
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        if (reference := reference_in(options["reference"])) is None:
            raise CommandError(
                "There is no reference in it; one looks like 01a3a0c4-9b1e-7c3a-8d52-0f6b1c2d3e4f."
            )
        if (event := LoginEvent.objects.filter(pk=reference).first()) is None:
            raise CommandError(_why_missing(reference, at))
        secret = Credential.objects.filter(pk=event.secret_id or 0).first()
        explanation = explain(event, secret.kind if secret else None)
        proof = _proof(event, secret) if event.secret_id else None
        return Output(_data(event, explanation, proof), _text(event, explanation, proof))


def _why_missing(reference: UUID, at: datetime) -> str:
    missing = explain_missing(reference, at)
    explanation = missing.cause.value.format(
        made=missing.made_at and format_moment_with_offset(missing.made_at),
        oldest=missing.oldest_at and format_moment_with_offset(missing.oldest_at),
    )
    return f"{explanation} Tell the caller: {CALLER_TEXTS[missing.cause]}"


def _data(event: LoginEvent, explanation: Explanation, proof: str | None) -> dict[str, Any]:
    return {
        "reference": event.id,
        "at": event.at,
        "outcome": event.reason or "issued",
        **explanation.as_json(),
        "client_id": event.client_id,
        "subject": event.subject or None,
        "actor": event.actor or None,
        "scope": event.scope or None,
        "kid": event.kid or None,
        "proved_by": proof,
        "source_address": event.source_address,
        "user_agent": event.user_agent,
    }


def _proof(event: LoginEvent, secret: Credential | None) -> str:
    """The secret that matched, the key that signed or the certificate, and the method."""
    if secret is None:
        return "a secret, key or certificate that was deleted since"
    used_before = ", used before" if event.detail == USED_BEFORE else ""
    if secret.is_key:
        return f"private_key_jwt, key {secret.kid}{used_before}"
    if secret.is_certificate:
        return f"tls_client_auth, certificate {secret} with {secret.certificate_name}"
    return f"client secret {secret}"


def _text(event: LoginEvent, explanation: Explanation, proof: str | None) -> str:
    facts = [
        f"client     {event.client_id or '(none sent)'}",
        f"taxpayer   {event.subject or '(not known)'}",
        *([f"acting     {event.actor}"] if event.actor else []),
        *([f"proved by  {proof}"] if proof else []),
        f"from       {event.source_address or '(not known)'}  {event.user_agent}",
    ]
    checks = [f"  [{_MARKS[result.state]}] {result.question}" for result in explanation.results]
    legend = "  ok passed, NO failed, . not reached, - not asked"
    return "\n".join([explanation.outcome, "", *facts, "", *checks, legend])
