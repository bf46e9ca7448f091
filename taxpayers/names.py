"""Names without case, accents and punctuation, as `models.name_lookups` folds stored ones. Pure."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

# What stands between words of a name, beside a blank. A folded name has a blank instead of each.
SEPARATORS = "(-./&'\""
_PUNCTUATION = re.compile(r"[\W_]+")  # what people type between words
_ACCENTS = re.compile("[\u0300-\u036f]")
_LAST_ACCENTED = 0x2000  # letters with accents have lower numbers

# Three letters make a trigram, the unit of PostgreSQL's index. A shorter word is looked for at the
# beginning of words only: anywhere, it would be in most names, and no index would help.
SHORTEST_PART = 3
# Many names share these, so they do not make two names similar.
_COMMON_WORDS = frozenset(
    (
        *("AND", "BERHAD", "BHD", "CO", "COMPANY", "DAN", "ENTERPRISE", "GROUP", "HOLDINGS", "INC"),
        *("KEDAI", "LIMITED", "LTD", "M", "PERNIAGAAN", "PLT", "SDN", "SENDIRIAN", "SYARIKAT"),
        *("THE", "TRADING"),
    )
)


def folded(text: str) -> str:
    """The text in capital letters without accents."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    return "".join(map(_capital, text))


def words_of(text: str) -> list[str]:
    """The folded words of a name, or of what was typed: letters and digits only."""
    return _PUNCTUATION.sub(" ", folded(text)).split()


def glob_of(word: str) -> str:
    """The pattern of SQLite's GLOB for a folded word in a name with a blank before it."""
    start = f"[ {SEPARATORS}]" if len(word) < SHORTEST_PART else ""
    return f"*{start}{''.join(map(_character_class, word))}*"


def distinctive_words(name: str) -> list[str]:
    """Its words without legal forms and other words that many names share, if any remain."""
    words = words_of(name)
    return [word for word in words if word not in _COMMON_WORDS] or words


def similarity(one: str, other: str) -> float:
    """How similar two names are, from 0 to 1: the share of trigrams of their distinctive words."""
    ours, theirs = (
        {trigram for word in distinctive_words(name) for trigram in _trigrams(word)}
        for name in (one, other)
    )
    return len(ours & theirs) / (len(ours | theirs) or 1)


def _capital(character: str) -> str:
    capital = character.upper()
    return capital if len(capital) == 1 else character  # ß, as PostgreSQL leaves it


def _character_class(character: str) -> str:
    """Every character that is folded to this one, as GLOB reads them."""
    variants = dict.fromkeys((character, character.lower(), *_accented()[character]))
    return f"[{''.join(variants)}]"


@cache
def _accented() -> defaultdict[str, list[str]]:
    """The letters with an accent that are folded to each letter."""
    letters = defaultdict(list)
    for letter in map(chr, range(0x80, _LAST_ACCENTED)):
        without = folded(letter)
        if without not in (letter, letter.upper()):
            letters[without].append(letter)
    return letters


def _trigrams(word: str) -> Iterator[str]:
    padded = f"  {word} "
    return (padded[place : place + 3] for place in range(len(padded) - 2))
