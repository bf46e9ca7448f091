"""The encoding of forms and query strings (RFC 6749 appendix B). Pure."""

import re
from urllib.parse import parse_qsl

from taxpayers.rules import Refused
from tokens.refusals.table import ProtocolReason

MAX_FIELDS = 100


_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def has_bad_escape(text: str) -> bool:
    """Whether it has a percent sign without two hexadecimal digits, which no client means."""
    return _BAD_ESCAPE.search(text) is not None


def malformed(detail: str) -> Refused:
    """The refusal of a request with this fault."""
    return Refused(ProtocolReason.MALFORMED_REQUEST, detail=detail)


def read_pairs(text: str, charset: str, where: str) -> list[tuple[str, str]]:
    """The parameters in an encoded text, in their order. Raises Refused, which names `where`."""
    if not text:
        return []
    if has_bad_escape(text):
        raise malformed(f"the {where} has a percent sign without two hexadecimal digits")
    try:
        return parse_qsl(
            text,
            keep_blank_values=True,
            encoding=charset,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except UnicodeDecodeError:
        raise malformed(f"the {where} is not percent-encoded {charset.upper()}") from None
    except ValueError:
        raise malformed(f"the {where} has more than {MAX_FIELDS} parameters") from None
