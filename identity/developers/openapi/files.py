"""What developers download, in the OpenAPI description: the client check."""

from identity.developers.openapi.errors import read_only
from identity.developers.openapi.parts import TEXT, Part, header, response

_DISPOSITION = header("The name of the file.", TEXT)


def file_paths() -> Part:
    """The client check."""
    headers = {"Content-Disposition": _DISPOSITION}
    success = response("The file", TEXT, headers=headers, media_type="text/x-python")
    return {
        "/clientcheck.py": {
            "get": {
                "operationId": "getClientCheck",
                "tags": ["Files"],
                "summary": "A program that plays this service against your ERP system, and reports",
                "security": [],
                "responses": {"200": success, **read_only("")},
            }
        }
    }
