"""A protected API with Flask.

pip install --find-links http://127.0.0.1:8000/packages/ "einvoicing-tokens[flask]"
AUTH_URL=http://127.0.0.1:8000 FOLDER=facts flask --app flask_api run --port 9000
"""

import os

from flask import Flask, g

from einvoicing_tokens import TokenVerifier
from einvoicing_tokens.flask import TokenRequired

app = Flask(__name__)
verifier = TokenVerifier(
    os.environ["AUTH_URL"], audience="InvoicingAPI", folder=os.environ.get("FOLDER")
)
tokens = TokenRequired(app, verifier)


@app.get("/health")
def health() -> dict[str, float | str | None]:
    """How old the facts are that tokens are checked by."""
    status = verifier.status()
    return {"age_seconds": status.age_seconds, "error": status.error}


@app.get("/documents")
@tokens(scope="InvoicingAPI", permission="documents:view")
def view() -> dict[str, str | None]:
    """Whose documents these are, and who asks for them."""
    return {"taxpayer": str(g.access_token.taxpayer), "actor": g.access_token.actor}


@app.post("/documents")
@tokens(scope="InvoicingAPI", permission="documents:submit")
def submit() -> tuple[dict[str, str], int]:
    """A document of the taxpayer that the token represents: no parameter names it."""
    return {"taxpayer": str(g.access_token.taxpayer)}, 201
