"""Public keys in a request: a JWK, a JWK Set, or PEM as a text."""

import json
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers


@extend_schema_field(
    {
        "description": "A JWK or a JWK Set as JSON, or one key in PEM as a string.",
        "anyOf": [{"type": "object"}, {"type": "string", "minLength": 1}],
    }
)
class PublicKeys(serializers.Field):  # type: ignore[type-arg]
    """Becomes the text that the services read."""

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, str) and data.strip():
            return data
        if not isinstance(data, dict):
            raise serializers.ValidationError("Give a JWK, a JWK Set, or PEM as a string.")
        return json.dumps(data)

    def to_representation(self, value: Any) -> Any:
        return value
