"""What the addresses have in common where a client sees and ends what is its own."""

import logging

from tokens.resource_server.active_token import ActiveTokenAuthentication
from tokens.resource_server.answered_view import AnsweredView
from tokens.resource_server.present_status import ANSWER_SECONDS


class SelfServiceView(AnsweredView):
    """Opens to every active token, whatever its scope: what it shows is the client's own."""

    authentication_classes = (ActiveTokenAuthentication,)
    answer_seconds = ANSWER_SECONDS
    logger = logging.getLogger("tokens.self_service")
    log_message = "self service"
