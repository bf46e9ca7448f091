"""What requests of intermediaries and of new systems have in common: body, id, answer."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from rest_framework import serializers, status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser

from taxpayers.identifiers import MalformedIdentifier, TaxpayerId
from taxpayers.models import PermissionRequest
from taxpayers.validation import taxpayer_notation
from tokens.http import rfc3339, rfc3339_or_none


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


def as_json(row: PermissionRequest, at: datetime, **more: Any) -> dict[str, Any]:
    """A request."""
    return {
        "id": str(row.pk),
        "state": row.state_at(at),
        "taxpayer": str(row.asked),
        "valid_until": rfc3339_or_none(row.valid_until),
        "reference": row.own_reference,
        "return_address": row.return_address or None,
        "asked_at": rfc3339(row.created_at),
        "expires_at": rfc3339(row.expires_at),
        "decided_at": rfc3339_or_none(row.decided_at),
        "confirm_url": f"{settings.CONFIRM_URL}/{row.pk}",
        **more,
    }


def id_in(text: str) -> UUID | None:
    """The id in an address; None if it is none."""
    try:
        return UUID(text) if len(text) == 36 else None
    except ValueError:
        return None


def taxpayer_in(text: str) -> TaxpayerId:
    """Raises ParseError."""
    try:
        return taxpayer_notation().parse(text)
    except MalformedIdentifier as fault:
        raise ParseError(f"taxpayer must be TIN or TIN:ROB: {fault}.") from None


def read_body(kind: type[serializers.Serializer[Any]], data: Any) -> dict[str, Any]:
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
