"""Protected APIs answer in JSON, whatever `Accept` asks for (contract 2).

Apart from the errors: the REST framework's views import this module, and the errors import them.
"""

from collections.abc import Iterable

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class AlwaysJson(DefaultContentNegotiation):
    """The first renderer of the view, never a 406; reads what `Content-Type` says."""

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type
