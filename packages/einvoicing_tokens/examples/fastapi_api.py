"""A protected API with FastAPI.

pip install --find-links http://127.0.0.1:8000/packages/ "einvoicing-tokens[fastapi]" uvicorn
AUTH_URL=http://127.0.0.1:8000 uvicorn fastapi_api:app --port 9000
"""

import os
from typing import Annotated

from fastapi import Depends, FastAPI

from einvoicing_tokens import AccessToken, TokenVerifier
from einvoicing_tokens.fastapi import TokenRequired, answer_token_errors

app = FastAPI()
answer_token_errors(app)

verifier = TokenVerifier(os.environ["AUTH_URL"], audience="InvoicingAPI")
may_view = TokenRequired(verifier, scope="InvoicingAPI", permission="documents:view")
may_submit = TokenRequired(verifier, scope="InvoicingAPI", permission="documents:submit")


@app.get("/documents")
async def view(token: Annotated[AccessToken, Depends(may_view)]) -> dict[str, str | None]:
    """Whose documents these are, and who asks for them."""
    return {"taxpayer": str(token.taxpayer), "actor": token.actor}


@app.post("/documents", status_code=201)
async def submit(token: Annotated[AccessToken, Depends(may_submit)]) -> dict[str, str]:
    """A document of the taxpayer that the token represents: no parameter names it."""
    return {"taxpayer": str(token.taxpayer)}
