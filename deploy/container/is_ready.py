"""Whether the node at BIND and PORT is ready, or live with the argument `/health/live`.

For a HEALTHCHECK and for probes, because the image has no curl.

Ends with 1 and one line if it is not; the line names the checks that failed.
"""

import http.client
import os
import socket
import sys
from pathlib import Path

_SECONDS = 3.0  # a node answers within 2, whatever the database does


def _fault(host: str, port: int, path: str) -> str | None:
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    file = Path(os.environ.get("VAR_DIR") or "var", f"health-{port}.sock")
    try:
        if file.exists():  # there it answers also while it accepts no other connection
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(_SECONDS)
            connection.sock.connect(str(file))
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return f"No answer on port {port}: {error}"
    finally:
        connection.close()
    return None if answer.status == http.client.OK else text


if __name__ == "__main__":
    path = "".join(sys.argv[1:]) or "/health/ready"
    port = int(os.environ.get("PORT") or 8000)
    sys.exit(_fault(os.environ.get("BIND") or "127.0.0.1", port, path))
