"""The OpenAPI description of an operation, from the same values that its view works with."""

from collections.abc import Iterator, Mapping
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from identity.api.framework.json_body import JsonBody
from identity.api.framework.problems import MEDIA_TYPE, PROBLEMS

_TEXT: dict[str, Any] = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "integer", "minimum": 1}
_NUMBERED = ("permission", "credential", "webhook", "delivery")
_READING = (400, 401, 403, 404, 405, 500, 503)
_CHANGING = (*_READING, 413, 415, 422)
_IF_MATCH = (
    "The ETag of the record as it was read, or * to change it whatever it is now. Without it: 428."
)
_KEY = (
    "A new text for each new request, for example a UUID in double quotes. A request that is"
    " repeated with it within 24 hours is not done again, and gets the same answer."
)


class FieldErrorRecord(serializers.Serializer[Any]):
    """One fault of a request."""

    pointer = serializers.CharField(
        required=False, help_text="The field, by its JSON pointer; # is the whole body."
    )
    parameter = serializers.CharField(required=False, help_text="The parameter of the query.")
    code = serializers.CharField(help_text="It never changes: decide by it.")
    detail = serializers.CharField()


class ProblemRecord(serializers.Serializer[Any]):
    """Problem details (RFC 9457)."""

    type = serializers.URLField(help_text="A page that explains this kind of problem.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="What is wrong, and what to do.")
    instance = serializers.CharField()
    correlationId = serializers.UUIDField()  # noqa: N815 - its name in every answer of the service
    errors = FieldErrorRecord(many=True, required=False)  # type: ignore[assignment]  # a name of RFC 9457
    error = serializers.CharField(required=False, help_text="Only with 401 and 403 (RFC 6750).")
    error_description = serializers.CharField(required=False)


class ManagementSchema(AutoSchema):
    """Asks the view: `describe(method)` returns what there is to say about it."""

    def get_operation_id(self) -> str:
        return str(self._described["id"])

    def get_summary(self) -> str:
        return str(self._described["summary"])

    def get_description(self) -> str:  # type: ignore[override]  # as its superclass has it
        return str(self._described.get("description", ""))

    def get_tags(self) -> list[str]:
        return [self._described["tag"]]

    def get_auth(self) -> list[dict[str, Any]]:
        view: Any = self.view
        return [{"accessToken": [scope]} for scope in view.scopes_for(self.method)]

    def map_parsers(self) -> list[str]:
        return [JsonBody.media_type]

    def get_request_serializer(self) -> Any:
        return self._described.get("body")

    def get_response_serializers(self) -> Any:
        described = self._described
        answers: dict[Any, Any] = {
            status: OpenApiResponse(described["answer"], description=described["summary"])
            for status in described.get("statuses", (200,))
        }
        faults = set(_CHANGING if self.method in ("POST", "PATCH") else _READING)
        if described.get("needs_match"):
            faults |= {412, 428}
        if self.method == "POST":
            faults |= {409}
        for status in sorted(faults):
            titles = sorted(kind.title for kind in PROBLEMS.values() if kind.status == status)
            answers[status, MEDIA_TYPE] = OpenApiResponse(
                ProblemRecord, description=". ".join(titles)
            )
        return answers

    def get_override_parameters(self) -> list[Any]:
        return [*self._sent(), *self._returned()]

    def _sent(self) -> Iterator[Any]:
        for name, description in self._described.get("path", {}).items():
            kind = _NUMBER if name in _NUMBERED else _TEXT
            yield OpenApiParameter(name, kind, OpenApiParameter.PATH, description=description)
        if filters := self._described.get("filters"):
            yield filters
        if self._described.get("needs_match"):
            yield _header("If-Match", _IF_MATCH, required=True)
        if self.method == "POST":
            yield _header("Idempotency-Key", _KEY)

    def _returned(self) -> Iterator[OpenApiParameter]:
        yield _header("correlationId", "The reference of this answer.", response=True)
        succeeded = list(self._described.get("statuses", (200,)))
        if self._described.get("has_etag"):
            yield _header("ETag", "The state of the record, for If-Match.", response=succeeded)
        if 201 in succeeded:
            yield _header("Location", "The address of the record.", response=succeeded)

    @property
    def _described(self) -> Mapping[str, Any]:
        view: Any = self.view
        described: Mapping[str, Any] = view.describe(self.method)
        return described


def _header(name: str, description: str, **more: Any) -> OpenApiParameter:
    return OpenApiParameter(name, _TEXT, OpenApiParameter.HEADER, description=description, **more)
