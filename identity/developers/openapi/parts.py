"""The words of an OpenAPI 3.1 description that several of its paths use. Pure."""

from collections.abc import Mapping
from typing import Any

Part = dict[str, Any]

JSON = "application/json"
TEXT: Part = {"type": "string"}
BOOLEAN: Part = {"type": "boolean"}
WHOLE_NUMBER: Part = {"type": "integer"}
MOMENT: Part = {"type": "string", "format": "date-time"}
UUID: Part = {"type": "string", "format": "uuid"}
URI: Part = {"type": "string", "format": "uri"}
TEXTS: Part = {"type": "array", "items": TEXT}
TAXPAYER: Part = {
    "type": "object",
    "required": ["tin"],
    "properties": {"tin": TEXT, "rob": TEXT},
    "description": "TIN, and the ROB number where there is one.",
}


def record(*optional: str, **members: Part) -> Part:
    """An object; all members are there but the `optional` ones."""
    return {
        "type": "object",
        "required": [name for name in members if name not in optional],
        "properties": members,
    }


def list_of(part: Part) -> Part:
    """An array of these."""
    return {"type": "array", "items": part}


def or_null(part: Part) -> Part:
    """This, or null."""
    return {"anyOf": [part, {"type": "null"}]}


def described(part: Part, description: str) -> Part:
    """The same with a description."""
    return {**part, "description": description}


def reference(kind: str, name: str) -> Part:
    """What the components hold under this name."""
    return {"$ref": f"#/components/{kind}/{name}"}


def header(description: str, part: Part, *, is_always_there: bool = True) -> Part:
    """A header of an answer."""
    return {"description": description, "required": is_always_there, "schema": part}


def response(
    description: str,
    schema: Part | None = None,
    *,
    headers: Mapping[str, Part] | None = None,
    media_type: str = JSON,
    example: Any = None,
    examples: Mapping[str, Part] | None = None,
) -> Part:
    """An answer; without a schema it has no body that matters."""
    answer: Part = {"description": description}
    if headers:
        answer["headers"] = dict(headers)
    if schema is not None:
        content: Part = {"schema": schema}
        if examples is not None:
            content["examples"] = dict(examples)
        elif example is not None:
            content["example"] = example
        answer["content"] = {media_type: content}
    return answer


def query(name: str, description: str, part: Part) -> Part:
    """A parameter of the query string, which may be left out."""
    return {"name": name, "in": "query", "description": description, "schema": part}
