"""`/logins`: every answered login attempt, and why it ended as it did. Only to be read."""

from typing import Any
from uuid import UUID

from django.db.models import Q
from rest_framework import serializers

from identity.api.framework.fields import Choice, Moment, Start, Taxpayer, Text
from identity.api.framework.kinds import RecordKind
from identity.api.framework.problems import Problem
from identity.api.framework.query import Filters
from taxpayers.duties import Duty
from tokens.answers.response import help_url
from tokens.explanation import explain
from tokens.login_events.partitions import first_id
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS

_ONE_OF = {"client_id", "subject", "actor", "outcome"}
_TOO_MANY = (
    "Filter by one of client_id, taxpayer, intermediary and outcome: each has its own index, and a"
    " list of two could read all logins."
)
ISSUED = "issued"


class LoginRecord(serializers.Serializer[LoginEvent]):
    """One login."""

    reference = serializers.UUIDField(source="pk", help_text="The correlationId of its answer.")
    at = Moment()
    outcome = serializers.SerializerMethodField()
    client_id = serializers.CharField(help_text="As it was sent; it may not exist.")
    is_authenticated = serializers.SerializerMethodField()
    taxpayer = serializers.CharField(source="subject", help_text="Who was represented, or empty.")
    intermediary = serializers.CharField(source="actor", help_text="Who acted for it, or empty.")
    scope = serializers.CharField()
    kid = serializers.CharField(help_text="The key that signed the token, or empty.")
    source_address = serializers.CharField(allow_null=True)
    user_agent = serializers.CharField()

    def get_outcome(self, event: LoginEvent) -> str:
        """The word issued, or the reason of the refusal."""
        return event.reason or ISSUED

    def get_is_authenticated(self, event: LoginEvent) -> bool:
        """Whether the secret, key or certificate of the client matched."""
        return event.system_user_id is not None


class ExplanationRecord(serializers.Serializer[LoginEvent]):
    """A login with every check, passed or failed, and what to do."""

    login = LoginRecord(source="*")
    explanation = serializers.SerializerMethodField()
    checks = serializers.SerializerMethodField()
    help = serializers.SerializerMethodField()

    def get_explanation(self, event: LoginEvent) -> str:
        """The outcome in one sentence."""
        return explain(event).outcome

    def get_checks(self, event: LoginEvent) -> list[dict[str, str]]:
        """Every check in the order in which they were made."""
        return [
            {"question": result.question, "state": str(result.state), "advice": result.advice}
            for result in explain(event).results
        ]

    def get_help(self, event: LoginEvent) -> str:
        """The public page of the reason; empty for a token that was issued."""
        return help_url(event.reason) if event.reason else ""


class _Since(Start):
    def to_internal_value(self, data: Any) -> UUID:  # type: ignore[override]
        return first_id(super().to_internal_value(data))


class LoginFilters(Filters):
    client_id = Text(required=False)
    taxpayer = Taxpayer(required=False, source="subject", help_text="Those for this taxpayer.")
    intermediary = Taxpayer(
        required=False, source="actor", help_text="Those in which it acted for another one."
    )
    # The index has no login with a token.
    outcome = Choice(
        {reason: Q(reason=reason) & ~Q(reason="") for reason in REFUSALS},
        required=False,
        help_text="A reason of a refusal.",
    )
    since = _Since(required=False, source="pk__gte", help_text="Those from this day or moment on.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Raises Problem for more than one that has its own index."""
        if len(attrs.keys() & _ONE_OF) > 1:
            raise Problem("malformed_request", _TOO_MANY)
        return attrs


KIND = RecordKind(
    name="logins",
    singular="login",
    parameter="reference",
    names="The correlationId of the answer to the login.",
    record=ExplanationRecord,
    duty=Duty.ISSUE,
    summary="List logins, the newest first",
    order=("-pk",),
    rows=LoginEvent.objects.all,
    filters=LoginFilters,
    listed=LoginRecord,
)
