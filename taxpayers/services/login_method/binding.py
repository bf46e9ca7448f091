"""Change what the tokens of a system user must be bound to (RFC 9449, RFC 8705 section 3)."""

from typing import Unpack

from taxpayers import actions
from taxpayers.actions import marked
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import SystemUser
from taxpayers.operations import Operation
from taxpayers.services.history import Asked, context_of, makes, update_and_record
from taxpayers.services.login_method.certificates import check_certificates_are_taken
from taxpayers.services.management_clients import lock_to_change

BIND_TOKENS = Operation(
    actions.CHANGE_LOGIN_METHOD,
    marked("Bind its tokens to a key or a certificate"),
    marked(
        "A bound token is useless to a thief. From now on the system user gets only tokens that are"
        " bound as you choose, and its other tokens end at this moment. Its ERP"
        " system must be able to do it: agree with its operator when to change this."
    ),
    own_name="bind_tokens",
)


@makes(BIND_TOKENS, "system_user")
def bind_tokens(
    *, system_user: SystemUser, binding: TokenBinding, **asked: Unpack[Asked]
) -> SystemUser:
    """Let it get only tokens that are bound so; those that are not end at once.

    `TokenBinding.BEARER`: any token again. Nothing happens if it is so already.
    """
    if binding == TokenBinding.TLS:
        check_certificates_are_taken()
    context = context_of(BIND_TOKENS, **asked)
    row = lock_to_change(system_user, context.by)
    update_and_record(row, context, token_binding=binding.value)
    return row
