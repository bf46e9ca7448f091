"""A stand-in for the authority's portal: its own sign-in, a key, and links. A stranger to our code.

As a program: `python stand_in_portal.py PORT CONFIRM_URL CLIENT_ID CLIENT_ID KEY_FILE`.
"""

import sys
import time
import uuid
from pathlib import Path
from urllib.parse import urlencode

import jwt
from flask import Flask, redirect, request
from markupsafe import escape
from werkzeug.wrappers import Response

PEOPLE = {"aminah": ("p-8d3c", "director", "high"), "farid": ("p-77a1", "clerk", "substantial")}


def new_ticket(key: str, client_id: str, kid: str, audience: str, **claims: object) -> str:
    """A ticket of this moment; a claim given as None is left out."""
    now = int(time.time())
    content = {
        "iss": client_id,
        "aud": audience,
        "iat": now,
        "exp": now + 300,
        "jti": str(uuid.uuid4()),
        "amr": ["national-id"],
        **claims,
    }
    headers = {"kid": kid, "typ": "portal-ticket+jwt"}
    left = {name: value for name, value in content.items() if value is not None}
    return jwt.encode(left, key, algorithm="ES256", headers=headers)


def new_portal(confirm_url: str, clients: dict[str, str], kid: str, key: str) -> Flask:
    """`clients`: the client_id for each kind of request."""
    portal = Flask(__name__)

    @portal.get("/permission-requests")
    def sign_in() -> str:
        """The portal's own sign-in: here it believes every name."""
        asked = request.args["request"]
        return f"""<!doctype html><title>Portal</title><form method="post">
            <input name="request" value="{uuid.UUID(asked)}" type="hidden">
            <input name="kind" value="{escape(request.args["kind"])}" type="hidden">
            <label>Name <input name="person" value="aminah"></label>
            <label>For <input name="taxpayer"></label><button>Sign in</button></form>"""

    @portal.post("/permission-requests")
    def signed_in() -> Response:
        person, capacity, level = PEOPLE[request.form["person"]]
        asked = request.form["request"]
        ticket = new_ticket(
            *(key, clients[request.form["kind"]], kid, confirm_url),
            sub=person,
            taxpayer=request.form["taxpayer"],
            capacity=capacity,
            acr=level,
            request=asked,
        )
        return redirect(f"{confirm_url}/{asked}?{urlencode({'ticket': ticket})}")

    return portal


if __name__ == "__main__":
    _program, port, url, permissions, credentials, file = sys.argv
    by_kind = {"permission": permissions, "connection": credentials}
    new_portal(url, by_kind, "portal", Path(file).read_text()).run(port=int(port))
