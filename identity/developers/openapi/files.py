"""What developers download, in the OpenAPI description: the collections and the client check."""

from identity.developers.openapi.errors import read_only
from identity.developers.openapi.parts import JSON, TEXT, Part, header, response

_DISPOSITION = header("The name of the file.", TEXT)


def file_paths() -> Part:
    """All of them."""
    return {
        "/postman.json": _file("getPostmanCollection", "Ready requests for Postman", JSON),
        "/bruno.zip": _file("getBrunoCollection", "The same for Bruno", "application/zip"),
        "/clientcheck.py": _file(
            "getClientCheck",
            "A program that plays this service against your ERP system, and reports",
            "text/x-python",
        ),
    }


def _file(name: str, summary: str, media_type: str) -> Part:
    schema: Part = {"type": "object"} if media_type == JSON else TEXT
    success = response(
        "The file", schema, headers={"Content-Disposition": _DISPOSITION}, media_type=media_type
    )
    return {
        "get": {
            "operationId": name,
            "tags": ["Files"],
            "summary": summary,
            "security": [],
            "responses": {"200": success, **read_only("")},
        }
    }
