"""What staff tell a caller, in every language of the pages: the reader may speak another one."""

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.utils import translation


@dataclass(frozen=True, slots=True)
class CallerText:
    """The text in one language, with the code and the name of the language."""

    language: str
    name: str
    text: str


def caller_texts(text: Callable[[], str]) -> list[CallerText]:
    """What `text` returns while each of the languages is active."""
    texts = []
    for language, name in settings.LANGUAGES:
        with translation.override(language):
            texts.append(CallerText(language, str(name), text()))
    return texts
