"""A process that serves only logins: answers one login, then says what it has loaded.

`python -m tests.support.login_worker CLIENT_ID CLIENT_SECRET`: nothing here may import a module
that the service itself would not.
"""

import io
import json
import sys
from typing import Any
from urllib.parse import urlencode
from wsgiref.util import setup_testing_defaults

from identity.wsgi import application


def main(client_id: str, client_secret: str) -> None:
    form = {"grant_type": "client_credentials", "client_id": client_id}
    body = urlencode(form | {"client_secret": client_secret}).encode()
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/connect/token",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "application/x-www-form-urlencoded",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    setup_testing_defaults(environ)
    statuses: list[str] = []

    def start_response(status: str, headers: object, exc_info: object = None, /) -> Any:
        statuses.append(status)

    application(environ, start_response)
    json.dump({"status": statuses[0], "modules": sorted(sys.modules)}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
