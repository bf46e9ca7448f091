"""What `/api/v1/permission-requests` and `/api/v1/connections` have in common."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from rest_framework import serializers, status
from rest_framework.exceptions import APIException, NotFound, ParseError
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSetMixin

from taxpayers.models import PermissionRequest
from taxpayers.services.permission_requests import withdraw_permission_request
from taxpayers.validation import ServiceError
from tokens.http import rfc3339, rfc3339_or_none
from tokens.resource_server.answered_view import AnsweredView
from tokens.self_service.view import moment_in, taxpayer_in


class RequestConflict(APIException):
    """409: the state of this request, or of others that are open, does not allow it."""

    status_code = status.HTTP_409_CONFLICT


class JsonBody(JSONParser):
    """JSON that is not nested so deeply that Python cannot read it."""

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        """Raises ParseError."""
        try:
            return super().parse(*args, **kwargs)
        except RecursionError:
            raise ParseError("JSON parse error: it is nested too deeply.") from None


class AskedBody(serializers.Serializer[Any]):
    """What the body of every request has."""

    taxpayer = serializers.CharField(max_length=129)
    valid_until = serializers.CharField(required=False, allow_null=True)
    reference = serializers.CharField(required=False, default="", allow_blank=True)
    return_address = serializers.CharField(required=False, default="", allow_blank=True)


class RequestsView(ViewSetMixin, AnsweredView):
    """Ask, poll, withdraw. A kind of request says who calls, what is asked, what else is told."""

    http_method_names = ("get", "head", "post")
    parser_classes = (JsonBody,)
    body: ClassVar[type[AskedBody]]
    not_found: ClassVar[str]
    ask: Callable[..., PermissionRequest]  # raises ServiceError
    more: Callable[[PermissionRequest], dict[str, Any]]  # what this kind's answers have besides

    @property
    def at(self) -> datetime:
        """Of this call."""
        return self.caller.at

    @property
    def own(self) -> "QuerySet[PermissionRequest]":
        """What the caller may see."""
        raise NotImplementedError

    def operation_of(self, request: Request) -> str:
        return f"{super().operation_of(request)} {self.action or ''}".rstrip()

    def found(self, text: str) -> PermissionRequest:
        """Raises NotFound: also for a request of another caller."""
        row = self.own.filter(pk=key).first() if (key := _id_in(text)) else None
        if row is None:
            raise NotFound(self.not_found)
        return row

    def create(self, request: Request) -> Response:
        """202: it waits for the taxpayer, if there is one."""
        given = read_body(self.body, request.data)
        try:
            row = self.ask(
                given,
                taxpayer=taxpayer_in(given["taxpayer"], "taxpayer must be TIN or TIN:ROB"),
                valid_until=moment_in(given.get("valid_until"), "valid_until", is_end=True),
                own_reference=given["reference"],
                return_address=given["return_address"],
                by=self.author,
                at=self.at,
            )
        except ServiceError as fault:
            raise RequestConflict(str(fault)) from None
        headers = {"Location": f"{request.path}/{row.pk}"}
        return Response(self.as_json(row), status=202, headers=headers)

    def retrieve(self, request: Request, id: str) -> Response:  # noqa: A002 - its name in the address
        """One request, to poll."""
        return Response(self.as_json(self.found(id)))

    def withdraw(self, request: Request, id: str) -> Response:  # noqa: A002 - its name in the address
        """One that is open. Safe to repeat; a body is not read."""
        row = self.found(id)
        try:
            row = withdraw_permission_request(request=row, by=self.author, at=self.at)
        except ServiceError as fault:
            raise RequestConflict(str(fault)) from None
        return Response(self.as_json(row))

    def as_json(self, row: PermissionRequest) -> dict[str, Any]:
        return {
            "id": str(row.pk),
            "state": row.state_at(self.at),
            "taxpayer": str(row.asked),
            "valid_until": rfc3339_or_none(row.valid_until),
            "reference": row.own_reference,
            "return_address": row.return_address or None,
            "asked_at": rfc3339(row.created_at),
            "expires_at": rfc3339(row.expires_at),
            "decided_at": rfc3339_or_none(row.decided_at),
            "confirm_url": f"{settings.CONFIRM_URL}/{row.pk}",
            **self.more(row),
        }


def _id_in(text: str) -> UUID | None:
    try:
        return UUID(text) if len(text) == 36 else None
    except ValueError:
        return None


def read_body(kind: type[AskedBody], data: Any) -> dict[str, Any]:
    """The fields of a body. Raises ParseError, which names the first that is wrong."""
    if not isinstance(data, dict):
        raise ParseError("The body must be a JSON object.")
    asked = kind(data=data)
    if unknown := sorted(set(data) - set(asked.fields)):
        raise ParseError(f"There is no field {unknown[0][:40]}: {', '.join(asked.fields)}.")
    if not asked.is_valid():
        name, faults = next(iter(asked.errors.items()))
        raise ParseError(f"{name}: {_first(faults)}")
    return dict(asked.validated_data)


def _first(faults: Any) -> str:
    while isinstance(faults, dict | list):
        faults = next(iter(faults.values() if isinstance(faults, dict) else faults))
    return str(faults)
