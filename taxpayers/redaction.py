"""Hides secrets and tokens in texts that come from clients, and in log lines (contract 5). Pure.

People swap id and secret and paste secrets into any field there is; programs encode them, wrap them
and cut them off. So everything is hidden that could be one: what has a secret's prefix, JWTs, what
follows `Basic` or `Bearer`, and every run of 16 or more letters and digits that is not made of
words, also percent-encoded. Readable stay words, dates, addresses, UUIDs, and client ids whose
checksum is right. A text with many percent signs is hidden whole: to decode each of its parts costs
more than a login, and anyone can send one.
"""

import re
from functools import lru_cache
from urllib.parse import unquote_plus

from taxpayers.credentials import IDS, is_client_id

HIDDEN = "[hidden]"
_CLIENT_ID_LENGTH = 36
_SHOWN_OF_AN_ID = 8  # of one with a fault: staff recognise it, and it is no use to others
_LONG = 16
_SHORTEST = len("eyJ") + 4  # of what is hidden
_LONGEST_WORDS = 40
_SHORT_WORD, _LONG_WORD = 8, 15
_MOST_ESCAPES = 32
EXAMINED = 4  # times as much as is stored: what is hidden is often longer than its mark

_MARKED = re.compile(
    r"([cp]s_(?:live|test)_)[0-9A-Za-z]+|(whsec_)[0-9A-Za-z+/]+=*|\beyJ[\w-]{8,500}+\.[\w.-]+",
    re.ASCII,
)
# Without a match nothing is to be hidden: one pass over the text, as most have nothing.
_SUSPECT = re.compile(
    r"[0-9A-Za-z]{16}|[CcPp][Ss]_[LlTt]|%[0-9A-Fa-f]{2}|eyJ|[Bb](?:asic|earer|ASIC|EARER)", re.ASCII
)
# A secret by its prefix, also broken or in capital letters, or a token: nothing else has this form.
_PASTED = re.compile(
    r"(?<![0-9a-z])(?:[cp]s_(?:live|test)_|whsec_)(?!\[hidden\])|\beyJ[\w-]{8,500}\.[\w-]",
    re.IGNORECASE | re.ASCII,
)
_NOT_ENCODED = re.compile(r"([^0-9A-Za-z_.~+%-]+)", re.ASCII)
_ENCODED_PERCENT = re.compile(r"%(?:25)+(?=[0-9A-Fa-f]{2})", re.ASCII)
_ENCODINGS = 4  # one inside the other, beyond encoded percent signs
_SCHEME = re.compile(r"\b(basic|bearer)((?:\s*[:=])?\s+)([0-9A-Za-z._~+/=%:-]{8,})", re.IGNORECASE)
# With the letters and digits before it: it may be the middle of a secret.
_TOKEN = re.compile(
    r"(?<![0-9A-Za-z])[0-9A-Za-z]*?eyJ[0-9A-Za-z_-]{4,}(?:\.[0-9A-Za-z_-]*){0,4}", re.ASCII
)
# Groups of letters and digits with blanks between: parts of a secret, some hidden already.
_GROUP = r"(?:[0-9A-Za-z]+|\[hidden\])"
_GROUPS = re.compile(rf"{_GROUP}(?:\s{{1,3}}{_GROUP})*")
_GROUP_OR_BLANKS = re.compile(rf"{_GROUP}|\s+")
# The rest of a token of which some parts are hidden already: "_" and "-" make its runs short.
_REST_OF_TOKEN = re.compile(
    r"(?<=\[hidden\])[._-][0-9A-Za-z_-]{4,}(?:\.[0-9A-Za-z_-]{4,})*", re.ASCII
)
_WORDS = re.compile(r"[a-z]*(?:[A-Z]{1,5}[a-z]{2,})*[A-Z]{0,5}", re.ASCII)  # also CamelCase
_PLAIN = re.compile(r"[A-Z]?[a-z]*|[A-Z]+|[0-9]+", re.ASCII)
_PREFIX_LENGTH = len("cs_live_")
_SECRET_PREFIXES = ("cs_live_", "cs_test_", "ps_live_", "ps_test_")
_ID_PREFIXES = ("ci_live_", "ci_test_", "pa_live_", "pa_test_")


def hide_secrets(text: str) -> str:
    """The text with `[hidden]` for everything in it that could be a secret or a token."""
    if len(text) < _SHORTEST or _SUSPECT.search(text) is None or _is_known(text):
        return text
    if "%" in text:
        if text.count("%") > _MOST_ESCAPES:
            return HIDDEN
        text = "".join(_hide_encoded(part) for part in _NOT_ENCODED.split(text))
    text = _SCHEME.sub(_hide_after_scheme, text)
    text = _TOKEN.sub(HIDDEN, text)
    text = _GROUPS.sub(_hide_in_groups, text)
    return _REST_OF_TOKEN.sub(_hide_rest, text)


class Shown(str):
    """A text that has been through `hide_secrets`: a log line takes it as it is."""

    __slots__ = ()


def shown(text: str, length: int) -> str:
    """What is stored of a text that a client sent: without secrets, printable, at most so long."""
    # Only the beginning is examined: many kilobytes may be sent. Cut again, because a text in which
    # a secret is hidden may be longer or shorter than before.
    hidden = hide_secrets(text[: EXAMINED * length])[:length]
    # PostgreSQL stores no NUL, and a log line no line break.
    if hidden.isprintable():
        return hidden
    return "".join(c if c.isprintable() else "?" for c in hidden)


def hide_marked_secrets(text: str) -> str:
    """A name without the secrets that are known by their form; nothing else of it changes."""
    return _MARKED.sub(rf"\1\2{HIDDEN}", text)


def holds_secret(text: str) -> bool:
    """Whether something in a text that staff type has the form of a secret, also encoded.

    Only by its form: what staff look for, a key ID for example, is never taken for one.
    """
    for _ in range(_ENCODINGS):
        if _PASTED.search(text) is not None:
            return True
        text, encoded = unquote_plus(text), text
        if text == encoded:
            return False
    return _PASTED.search(text) is not None


def hide_pasted_secrets(text: str) -> str:
    """The text without what `holds_secret` finds; any other text as it is."""
    if not holds_secret(text):
        return text
    shown = hide_secrets(text)
    return HIDDEN if holds_secret(shown) else shown


def _is_known(text: str) -> bool:
    return len(text) == _CLIENT_ID_LENGTH and text.startswith(_ID_PREFIXES) and _is_id(text)


@lru_cache(maxsize=4096)
def _is_id(text: str) -> bool:
    return any(is_client_id(text, kind) for kind in IDS)


def _hide_encoded(part: str) -> str:
    """`[hidden]` if the decoded part has something to hide, the part as it is otherwise."""
    if "%" not in part:
        return part
    decoded = part
    for _ in range(_ENCODINGS):
        before, decoded = decoded, unquote_plus(_ENCODED_PERCENT.sub("%", decoded))
        if decoded == before:
            break
    decoded = decoded.replace("%", " ")  # so that this ends here
    return part if hide_secrets(decoded) == decoded else HIDDEN


def _hide_after_scheme(match: re.Match[str]) -> str:
    scheme, blanks, value = match.groups()
    if _WORDS.fullmatch(value.rstrip(".:")):  # "the Basic Authorization header"
        return str(match[0])
    return f"{scheme}{blanks}{HIDDEN}"


def _hide_rest(match: re.Match[str]) -> str:
    mark, parts = match[0][0], match[0][1:].split(".")
    return match[0] if all(_WORDS.fullmatch(part) for part in parts) else f"{mark}{HIDDEN}"


def _hide_in_groups(match: re.Match[str]) -> str:
    pieces = _GROUP_OR_BLANKS.findall(match[0])  # groups at even places, blanks between
    start = match.string[max(0, match.start() - _PREFIX_LENGTH - 3) : match.start()].lower()
    before = start[-_PREFIX_LENGTH:]
    if before in _ID_PREFIXES and _is_id(before + pieces[0]):
        pieces[0], known = "", pieces[0]
    else:
        known = ""
    hidden = [_could_be_secret(group) for group in pieces[::2]]
    hidden[0] = hidden[0] or before in _SECRET_PREFIXES
    if not any(hidden):
        return str(match[0])
    hidden[0] = hidden[0] or start.rstrip().endswith(_SECRET_PREFIXES)  # broken after its prefix
    _spread(hidden, pieces[::2])
    shown = pieces[0][:_SHOWN_OF_AN_ID] if before in _ID_PREFIXES and hidden[0] else ""
    return f"{known}{shown}{_joined(pieces, hidden)}"


def _could_be_secret(group: str) -> bool:
    if len(group) < _LONG:
        return group == HIDDEN
    return len(group) > _LONGEST_WORDS or _WORDS.fullmatch(group) is None


def _spread(hidden: list[bool], groups: list[str]) -> None:
    """What is no plain word belongs to a hidden group beside it, also beyond one short word.

    Beyond a longer one, if without the blank both would be as long as what is hidden by itself.
    """
    for order in (range(1, len(groups)), range(len(groups) - 2, -1, -1)):
        for place in order:
            neighbour, beyond = place - order.step, place - 2 * order.step
            if hidden[place] or _PLAIN.fullmatch(groups[place]) is not None:
                continue
            if hidden[neighbour]:
                hidden[place] = True
            elif 0 <= beyond < len(groups) and hidden[beyond]:
                word, joined = len(groups[neighbour]), len(groups[neighbour] + groups[place])
                is_part = word <= _SHORT_WORD or (word < _LONG_WORD and joined >= _LONG)
                hidden[place] = hidden[neighbour] = is_part


def _joined(pieces: list[str], hidden: list[bool]) -> str:
    parts: list[str] = []
    for place, is_hidden in enumerate(hidden):
        follows_hidden = place > 0 and hidden[place - 1]
        if place and not (is_hidden and follows_hidden):
            parts.append(pieces[2 * place - 1])
        if not is_hidden:
            parts.append(pieces[2 * place])
        elif not follows_hidden:
            parts.append(HIDDEN)
    return "".join(parts)
