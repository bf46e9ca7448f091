"""Tasks of a system user itself: block it, limit it, bind its tokens."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db.models import Model
from rest_framework import serializers

from identity.api.framework.fields import Body, Taxpayers, Text, Texts
from identity.api.framework.kinds import ApiTask, Asker, Once, Values
from identity.api.registry.taxpayers import ReasonBody
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import SystemUser
from taxpayers.services import bind_tokens
from taxpayers.services.limits.acting import LIMIT_SYSTEM_USER
from taxpayers.services.login_method.binding import BIND_TOKENS
from taxpayers.services.system_users import BLOCK_SYSTEM_USER, UNBLOCK_SYSTEM_USER

Act = Callable[[SystemUser, Values, Asker], Model | Once]
_BINDINGS = {"none": TokenBinding.BEARER, "dpop": TokenBinding.DPOP, "tls": TokenBinding.TLS}


class LimitsBody(Body):
    """What it may do for other taxpayers at most; both empty: whatever they grant."""

    permissions = Texts()
    taxpayers = Taxpayers()
    reason = Text()


class BindingBody(Body):
    """What its tokens must be bound to."""

    token_binding = serializers.ChoiceField(sorted(_BINDINGS))
    reason = Text()


def of_client(act: Act) -> Any:
    """A task that needs nothing of its address besides the system user."""

    @wraps(act)
    def checked(row: SystemUser, values: Values, address: Values, asker: Asker) -> Model | Once:
        return act(row, values, asker)

    return checked


def _bind(row: SystemUser, values: Values, asker: Asker) -> Model:
    binding = _BINDINGS[values["token_binding"]]
    return bind_tokens(system_user=row, binding=binding, reason=values["reason"], **asker.context)


TASKS = (
    ApiTask("block", BLOCK_SYSTEM_USER, ReasonBody),
    ApiTask("unblock", UNBLOCK_SYSTEM_USER, ReasonBody),
    ApiTask("limits", LIMIT_SYSTEM_USER, LimitsBody),
    ApiTask("bind-tokens", BIND_TOKENS, BindingBody, of_client(_bind)),
)
