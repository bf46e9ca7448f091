"""`sandbox`: the clients of the sandbox, created where they are missing, and what each does."""

from datetime import datetime
from typing import Any

from identity.sandbox.catalogue import CLIENTS, TOKEN, SandboxClient
from identity.sandbox.listing import RESET, sandbox_as_json
from identity.sandbox.registry import make_sandbox
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author


class Command(ServiceCommand):
    help = (
        "Create the clients of the sandbox that are missing, and list them all with what each"
        " does. Only with ENVIRONMENT=test; safe to repeat."
    )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        created = [str(name) for name in make_sandbox(at)]
        text = "\n\n".join([*map(_described, CLIENTS), str(RESET)])
        return Output({**sandbox_as_json(), "created": created}, text)


def _described(client: SandboxClient) -> str:
    gets = "a token" if client.gets == TOKEN else client.gets
    lines = [
        f"{client.name}: gets {gets}. {client.does}",
        f"  client_id      {client.credentials.client_id}",
        f"  client_secret  {client.credentials.client_secret}",
    ]
    if client.on_behalf_of:
        lines.append(f"  onbehalfof     {client.on_behalf_of}")
    return "\n".join(lines)
