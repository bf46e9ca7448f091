"""What the history can say was done with webhooks. Pure."""

from functools import partial

from taxpayers.actions import Action, actions_in, marked as _
from taxpayers.duties import Duty

_webhook = partial(Action, "webhookendpoint", Duty.WEBHOOKS)
REGISTER_WEBHOOK = _webhook("register_webhook", _("Registered the webhook"))
CHANGE_WEBHOOK = _webhook("change_webhook", _("Changed the webhook"))
ROTATE_WEBHOOK_SECRET = _webhook("rotate_webhook_secret", _("Issued a new secret of the webhook"))
ENABLE_WEBHOOK = _webhook("enable_webhook", _("Enabled the webhook"))
DELETE_WEBHOOK = _webhook("delete_webhook", _("Deleted the webhook"))
DISABLE_WEBHOOK = _webhook("disable_webhook", _("Disabled the webhook"))

ACTIONS = actions_in(globals())
