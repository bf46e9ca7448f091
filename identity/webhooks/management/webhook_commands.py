"""The commands about one webhook; `list_webhooks` shows them all."""

from typing import Any, ClassVar

from identity.webhooks import endpoints
from identity.webhooks.event_types import EVENT_TYPES
from identity.webhooks.models import WebhookDelivery, WebhookEndpoint
from taxpayers.management.arguments import Field, parse_start
from taxpayers.management.command import Output
from taxpayers.management.operation_command import Named, OperationCommand, Options
from taxpayers.management.table import Commands, command


def webhook_data(row: WebhookEndpoint) -> dict[str, Any]:
    """For machines; never a secret."""
    return {
        "id": row.pk,
        "url": row.url,
        "description": row.description,
        "event_types": row.event_types,
        "is_active": row.is_active,
        "client_id": row.client_id,
    }


def _types(text: str, **more: Any) -> Field:
    return {"flag": "--event", "metavar": "TYPE", "nargs": "+", "help": text, **more}


_ONLY = f"send only these: {', '.join(EVENT_TYPES)}"


class _WebhookCommand(OperationCommand):
    named: ClassVar[Named | None] = Named(
        *("webhook", WebhookEndpoint),
        "There is no webhook {}. See them all: manage.py list_webhooks",
        *(int, "as list_webhooks shows it"),
    )

    def data(self, row: WebhookEndpoint) -> dict[str, Any]:
        return webhook_data(row)


class _IssuingCommand(_WebhookCommand):
    """Shows a new secret in clear, once."""

    note = ""

    def answer(self, done: endpoints.IssuedWebhookSecret, options: Options) -> Output:
        text = (
            f"webhook  {done.endpoint.pk}\n"
            f"url      {done.endpoint.url}\n"
            f"secret   {done.secret}\n"
            "\nGive the secret to the receiver. It is not shown again."
        )
        return Output({**webhook_data(done.endpoint), "secret": done.secret}, text)


class _RepeatWebhook(_WebhookCommand):
    operation = endpoints.REPEAT_FAILED
    fields = {
        "since": {"metavar": "DATE", "type": parse_start, "help": "only events from this day on"}
    }
    note = ""
    takes_reason = False

    def answer(self, done: int, options: Options) -> Output:
        return Output({"repeated": done}, f"{done} messages are sent again.")


class _SendTest(_WebhookCommand):
    operation = endpoints.SEND_TEST
    fields = {
        "event_types": _types("a sample of each of these types; all: of every type", default=())
    }
    note = "list_webhooks shows what it has answered."
    takes_reason = False

    def given(self, options: Options) -> Options:
        given = super().given(options)
        return {"event_types": EVENT_TYPES} if given["event_types"] == ["all"] else given

    def answer(self, done: list[WebhookDelivery], options: Options) -> Output:
        names = [delivery.event.message_id for delivery in done]
        return Output(
            {"webhook_ids": names} if options["event_types"] else {"webhook_id": names[0]},
            f"{', '.join(names)}: sent as soon as deliver_webhooks runs. Then see list_webhooks.",
        )


COMMANDS: Commands = {
    "register_webhook": command(
        _IssuingCommand,
        endpoints.REGISTER_WEBHOOK,
        named=None,
        fields={
            "url": {"flag": "", "metavar": "URL", "help": "https address of the receiver"},
            "event_types": _types(f"{_ONLY}; default: all", default=[]),
            "description": {"default": "", "help": "whose it is, for operators"},
        },
    ),
    "change_webhook": command(
        _WebhookCommand,
        endpoints.CHANGE_WEBHOOK,
        "{row} is changed.",
        fields={
            "url": {"metavar": "URL", "help": "https address of the receiver"},
            "event_types": _types(f"{_ONLY}; no TYPE means all", nargs="*"),
            "description": {"help": "whose it is, for operators"},
        },
    ),
    "rotate_webhook_secret": command(_IssuingCommand, endpoints.ROTATE_WEBHOOK_SECRET),
    "enable_webhook": command(
        _WebhookCommand, endpoints.ENABLE_WEBHOOK, "{row} gets what changes from now on."
    ),
    "disable_webhook": command(_WebhookCommand, endpoints.DISABLE_WEBHOOK, "{row} gets nothing."),
    "delete_webhook": command(_WebhookCommand, endpoints.DELETE_WEBHOOK, "{row} is deleted."),
    "repeat_webhook": _RepeatWebhook,
    "send_test_webhook": _SendTest,
}
