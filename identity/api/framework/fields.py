"""Fields that take exactly their JSON type, and serializers that refuse every other field."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from taxpayers.identifiers import MalformedIdentifier, TaxpayerId
from taxpayers.moments import end_of_day, exact_text, parse_moment, start_of_day
from taxpayers.validation import MAX_REASON_LENGTH, taxpayer_notation

_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d\d:\d\d))?"
)


class Body(serializers.Serializer[Any]):
    """The fields of a request. A field that is not listed is an error, by its name."""

    def to_internal_value(self, data: Any) -> Any:
        names = data if isinstance(data, Mapping) else ()
        text = f"There is no such field here. Choose from: {', '.join(self.fields)}."
        unknown = {
            name: [ErrorDetail(text, "unknown")] for name in names if name not in self.fields
        }
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as fault:
            details = fault.detail if isinstance(fault.detail, dict) else {}
            raise serializers.ValidationError({**details, **unknown}) from None
        if unknown:
            raise serializers.ValidationError(unknown)
        return values


class Text(serializers.CharField):
    """A string with something in it besides blanks. Other types are not made strings."""

    most: int | None = 255  # characters

    def __init__(self, **options: Any) -> None:
        if self.most is not None:
            least = None if options.get("allow_blank") else 1
            options = {"min_length": least, "max_length": self.most, **options}
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Reason(Text):
    """Why a change is made; it stands in the history."""

    most = MAX_REASON_LENGTH


class ReasonBody(Body):
    """Why a change is made; it stands in the history."""

    reason = Reason()


class Truth(serializers.BooleanField):
    """true or false; nothing else becomes one of them."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Whole(serializers.IntegerField):
    """An integer; not a string of digits, a fraction or a boolean."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data


class Texts(serializers.ListField):
    child = Text(max_length=255)

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=500, **options)


@extend_schema_field({"type": "string", "examples": ["C2584563222", "C2584563222:202001234567"]})
class Taxpayer(Text):
    """`TIN` or `TIN:ROB`, as in the header `onbehalfof`; `becomes` makes the value of it."""

    most = None  # the notation says

    def __init__(
        self, *, becomes: Callable[[TaxpayerId], Any] = lambda named: named, **options: Any
    ) -> None:
        self._becomes = becomes
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> Any:
        try:
            return self._becomes(taxpayer_notation().parse(super().to_internal_value(data)))
        except MalformedIdentifier as fault:
            raise serializers.ValidationError(f"Write TIN or TIN:ROB: {fault}.") from None


class Taxpayers(serializers.ListField):
    child = Taxpayer()


@extend_schema_field(
    {
        "anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}],
        "examples": ["2027-12-31"],
    }
)
class _DayOrMoment(Text):
    most = None
    of_day: Callable[[date], datetime]

    def to_internal_value(self, data: Any) -> datetime:  # type: ignore[override]
        text = super().to_internal_value(data)
        try:
            if not _MOMENT.fullmatch(text):
                raise ValueError(text)
            return parse_moment(text.upper(), type(self).of_day)
        except (ValueError, OverflowError):
            raise serializers.ValidationError(
                "Write a day, for example 2027-12-31, or a moment with its offset, for example"
                " 2027-12-31T18:00:00+08:00.",
                "invalid",
            ) from None


class Start(_DayOrMoment):
    """The first moment: a moment, or a day, which begins in the authority's time zone."""

    of_day = staticmethod(start_of_day)


class End(_DayOrMoment):
    """The last moment: a moment, or a day, which ends in the authority's time zone."""

    of_day = staticmethod(end_of_day)


class Choice(serializers.ChoiceField):
    """One of these words; becomes what it means, if there are meanings."""

    def __init__(self, words: Collection[str] | Mapping[str, Any], **options: Any) -> None:
        self._meanings = words if isinstance(words, Mapping) else {word: word for word in words}
        texts: dict[str, Any] = {"invalid_choice": f"Choose one of: {', '.join(sorted(words))}."}
        super().__init__(sorted(words), error_messages=texts, **options)

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid_choice", input=data)
        return self._meanings[super().to_internal_value(data)]


class Moment(serializers.DateTimeField):
    """A moment in an answer: in UTC, and exact, so that it can be sent back as it is."""

    def to_representation(self, value: Any) -> Any:
        return exact_text(value)


class Words(serializers.ListField):
    """A list in an answer that is stored as words separated by blanks."""

    child = serializers.CharField()

    def to_representation(self, data: Any) -> list[str]:
        return data.split() if isinstance(data, str) else sorted(str(entry) for entry in data)


def pointer_of(body: type[Body], names: Collection[str]) -> str:
    """Where the body has the first of these fields of a service; `#` is the whole of it."""
    places = {field.source: f"#/{name}" for name, field in body().fields.items()}
    return next((places[name] for name in names if name in places), "#")


def values_of(body: type[Body], data: Any) -> dict[str, Any]:
    """The values of a request. Raises rest_framework's ValidationError with every fault."""
    serializer = body(data=data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


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
