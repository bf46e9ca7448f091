"""The story with the clients of openapi-python-client, which the test puts beside it."""
# mypy: ignore-errors

import importlib
import json
import os
import pkgutil
import sys

import management
import public
from management.api.taxpayers import change_taxpayer, create_taxpayer, list_taxpayers
from management.models import NewTaxpayerBody, ProblemRecord, RenameBody, TaxpayerRecord
from public.api.clients import log_in
from public.models import Error, LogInBody, Token

for package in (management, public):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)

url, tin = os.environ["URL"], os.environ["TIN"]
login = {name.lower(): os.environ[name] for name in ("CLIENT_ID", "CLIENT_SECRET", "SCOPE")}
refused = log_in.sync(
    client=public.Client(url), body=LogInBody("client_credentials", **login | {"scope": "x"})
)
assert isinstance(refused, Error)
token = log_in.sync(client=public.Client(url), body=LogInBody("client_credentials", **login))
assert isinstance(token, Token)
portal = management.AuthenticatedClient(url, token.access_token)
created = create_taxpayer.sync_detailed(client=portal, body=NewTaxpayerBody(tin, "Kedai"))
assert isinstance(created.parsed, TaxpayerRecord)
etag = created.headers["ETag"]
body = RenameBody(name="Kedai Runcit", reason="A new sign")
renamed = change_taxpayer.sync(tin, client=portal, body=body, if_match=etag)
assert isinstance(renamed, TaxpayerRecord)
stale = change_taxpayer.sync(tin, client=portal, body=body, if_match=etag)
assert isinstance(stale, ProblemRecord)
blank = create_taxpayer.sync(client=portal, body=NewTaxpayerBody(tin, " "))
assert isinstance(blank, ProblemRecord)
assert blank.errors
found = list_taxpayers.sync(client=portal, tin=tin)
told = {
    "refused": refused.error,
    "name": renamed.name,
    "registered_at": renamed.registered_at.isoformat(),
    "stale": stale.status,
    "pointer": blank.errors[0].pointer,
    "found": [one.taxpayer for one in found.items],
}
json.dump(told, sys.stdout)
