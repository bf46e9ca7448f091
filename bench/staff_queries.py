"""Signs an officer in and counts the queries of pages: `python -m bench.staff_queries < paths`.

Runs in a process of its own, with the settings of the service that is measured.
"""

import json
import sys

import django


def main() -> None:
    """Reads paths as JSON, writes the session and, for each path, how many queries it took."""
    django.setup()
    from django.conf import settings
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from tests.support.accounts import new_staff, signed_in, with_totp

    user = with_totp(new_staff(username=f"bench{id(sys)}", password=None))
    client = signed_in(user, HTTP_X_FORWARDED_PROTO="https", secure=True)
    queries = {}
    for path in json.load(sys.stdin):
        with CaptureQueriesContext(connection) as captured:
            response = client.get(path, secure=True)
        if response.status_code != 200:
            raise SystemExit(f"{path}: {response.status_code}")
        queries[path] = len(captured)
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    json.dump({"cookie": cookie, "queries": queries}, sys.stdout)


if __name__ == "__main__":
    main()
