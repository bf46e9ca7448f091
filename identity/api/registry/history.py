"""The history of a record: who changed it, when, what and why."""

from rest_framework import serializers

from identity.api.framework.fields import Moment, Start
from identity.api.framework.kinds import Listing
from identity.api.framework.query import Filters
from taxpayers.models import Change


class ChangeRecord(serializers.Serializer[Change]):
    """One change."""

    at = Moment()
    by = serializers.CharField(help_text="A member of staff, or a client.")
    address = serializers.CharField(allow_null=True, help_text="From where it came.")
    action = serializers.CharField()
    reason = serializers.CharField()
    before = serializers.DictField()
    after = serializers.DictField()
    reference = serializers.UUIDField(
        source="task_id",
        allow_null=True,
        help_text="The correlationId of the request, or what changes made as one have in common.",
    )


class HistoryFilters(Filters):
    since = Start(required=False, source="at__gte", help_text="Those from this day or moment on.")


def history_of(name: str, singular: str) -> Listing:
    """The history of one kind of record."""
    return Listing(
        f"history_of_{name}",
        f"List the changes of the {singular}, the newest first",
        ChangeRecord,
        ("-at", "-pk"),
        lambda row: Change.objects.filter(object_type=row._meta.model_name, object_id=str(row.pk)),
        HistoryFilters,
    )
