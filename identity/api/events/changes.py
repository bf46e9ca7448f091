"""`/changes`: the history of all records as a feed that misses nothing and comes in its order."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from identity.api.framework.fields import Moment, Text
from identity.api.framework.query import Paged, bad_place, read_query
from identity.api.framework.view import ManagementView
from identity.webhooks.event_types import event_type_of
from identity.webhooks.publishing import publish_changes
from identity.webhooks.subjects import subjects_of
from taxpayers.duties import Duty
from taxpayers.models import Change
from taxpayers.services.feed.chain import is_numbered, log_sealed
from tokens.resource_server.pagination import MOST

_CURSOR = re.compile(r"([1-9][0-9]{0,17})-([0-9a-f]{1,16})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_PUBLISHED = 10  # batches that one request gives their places; the next one goes on


class FeedRecord(serializers.Serializer[Any]):
    """A change, without its values: read the record, or its history."""

    at = Moment()
    kind = serializers.CharField(help_text="taxpayer, intermediary, permission or system_user.")
    id = serializers.CharField()
    path = serializers.CharField(help_text="Its address in this API.")
    action = serializers.CharField()
    event_type = serializers.CharField(
        help_text="The type of its webhook event; empty: it has none."
    )
    reference = serializers.UUIDField(
        allow_null=True, help_text="The correlationId of the request, or what a task has in common."
    )


class FeedPage(serializers.Serializer[Any]):
    """The next changes, the oldest first."""

    items = FeedRecord(many=True)
    next_after = serializers.CharField(
        allow_blank=True, help_text="What to send as `after` next time; it is good for ever."
    )
    has_more = serializers.BooleanField(help_text="Whether there are more now.")


class FeedFilters(Paged):
    after = Text(
        required=False,
        allow_blank=True,
        help_text="The next_after of the page before; left out or empty: all.",
    )


class ChangesView(ManagementView):
    http_method_names = ("get", "head")
    duty = Duty.WEBHOOKS

    def get(self, request: Request) -> Response:
        given = read_query(request, FeedFilters)
        for _batch in range(_MOST_PUBLISHED):
            published = publish_changes(self.caller.at)
            log_sealed(published)
            if not published:
                break
        limit, after = given["limit"], given.get("after", "")
        behind = Change.objects.filter(position__gt=_position(after)).order_by("position")
        rows = list(behind[: limit + 1])
        page = rows[:limit]
        subjects = subjects_of(page)
        items = [
            {
                "at": row.at,
                **subjects[row.pk].as_json(),
                "action": row.action,
                "event_type": event_type_of(row.object_type, row.action),
                "reference": row.task_id,
            }
            for row in page
            if row.pk in subjects
        ]
        body = {
            "items": FeedRecord(items, many=True).data,
            "next_after": _after(page[-1]) if page else after,
            "has_more": len(rows) > limit or not is_numbered(),
        }
        return Response(body)

    def describe(self, method: str) -> dict[str, Any]:
        return {
            "id": "list_changes",
            "summary": "Read the changes of all records, the oldest first",
            "description": "Send next_after as after, again and again: no change is left out or"
            f" repeated, whenever it was committed. A page has at most {MOST} of them, and fewer"
            " where changes of other kinds are between.",
            "tag": "changes",
            "filters": FeedFilters,
            "answer": FeedPage,
        }


def _after(row: Change) -> str:
    """The place, and the moment of the change there: so that another one there is noticed."""
    return f"{row.position}-{(row.at - _EPOCH) // timedelta(microseconds=1):x}"


def _position(after: str) -> int:
    """Raises Problem for what was no place, or is none any more: the database was restored."""
    if not after:
        return 0
    match = _CURSOR.fullmatch(after)
    row = Change.objects.filter(position=int(match[1])).first() if match else None
    if row is None or _after(row) != after:
        detail = (
            "There is no such place in the feed. If it is a next_after, the database was restored"
            " from a backup: leave it out, and begin again."
        )
        raise bad_place("after", detail)
    return int(match[1]) if match else 0
