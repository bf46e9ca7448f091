"""Which form of an answer a caller accepts: the header `Accept` (RFC 9110 section 12.5.1). Pure."""

from collections.abc import Sequence


def choose_media_type(accept: str, offered: Sequence[str]) -> str | None:
    """The offered media type that the caller likes best, the first of equals; None: none."""
    if not accept.strip():
        return offered[0]
    ranges = [_read_range(text) for text in accept.split(",")]
    qualities = {media_type: _quality(media_type, ranges) for media_type in offered}
    best = max(offered, key=qualities.__getitem__)  # max keeps the first of equals
    return best if qualities[best] > 0 else None


def _read_range(text: str) -> tuple[str, float]:
    media_range, *parameters = (part.strip().lower() for part in text.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            quality = _read_quality(value.strip())
    return media_range, quality


def _read_quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0 <= quality <= 1 else 0.0


def _quality(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """That of the most specific range; 0 if none matches."""
    for wanted in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        found = [quality for media_range, quality in ranges if media_range == wanted]
        if found:
            return max(found)
    return 0.0
