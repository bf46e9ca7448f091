"""`sandbox`: the clients of the sandbox, created where they are missing, and what each does."""

from datetime import datetime
from typing import Any

from identity.sandbox.catalogue import CLIENTS, TOKEN, SandboxClient
from identity.sandbox.listing import RESET, client_as_json, sandbox_as_json
from identity.sandbox.registry import make_sandbox
from identity.sandbox.state import SandboxState, state_of
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author


class Command(ServiceCommand):
    help = (
        "Create the clients of the sandbox that are missing, and list them all with what each"
        " does. Only with ENVIRONMENT=test; safe to repeat."
    )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        created = make_sandbox(at)
        shown = [(client, state_of(client, at)) for client in CLIENTS]
        data = sandbox_as_json() | {
            "created": [str(name) for name in created],
            "clients": [
                client_as_json(client) | {"now": str(state.gets), "is_right": state.is_right}
                for client, state in shown
            ],
        }
        text = "\n\n".join([*(_described(*pair) for pair in shown), str(RESET)])
        wrong = [str(client.name) for client, state in shown if not state.is_right]
        return Output(data, text, _fault(wrong))


def _described(client: SandboxClient, state: SandboxState) -> str:
    gets = "a token" if client.gets == TOKEN else client.gets
    lines = [
        f"{client.name}: gets {gets}. {client.does}",
        f"  client_id      {client.credentials.client_id}",
        f"  client_secret  {client.credentials.client_secret}",
    ]
    if client.on_behalf_of:
        lines.append(f"  onbehalfof     {client.on_behalf_of}")
    if not state.is_right:
        lines.append(f"  CHANGED: now it gets {state.gets}.")
    return "\n".join(lines)


def _fault(wrong: list[str]) -> str:
    if not wrong:
        return ""
    return (
        f"The records of these clients were changed: {', '.join(wrong)}. Undo it on the pages of"
        " the system user, its taxpayer or the permission."
    )
