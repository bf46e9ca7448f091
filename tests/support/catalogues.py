"""The Malay catalogue of the staff's texts, in pure Python: `make messages` writes it.

Python is read by Babel; templates by Django's own `templatize`, whose result Babel reads. So
GNU gettext is not needed, neither to write the catalogue nor to run or test the service.
"""

import json
import re
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po
from django.utils.translation import templatize

ROOT = Path(__file__).resolve().parents[2]
LOCALE = ROOT / "locale"
# Texts of the theme and of the sign-in that staff see: neither library has a Malay catalogue.
LIBRARIES = LOCALE / "libraries.json"
LANGUAGE = "ms"  # English is what the sources say
PO = LOCALE / LANGUAGE / "LC_MESSAGES" / "django.po"
_APPS = ("identity", "taxpayers", "tokens")
# No pgettext: nothing here needs a context, so the id of a message is its text.
_KEYWORDS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop", "marked")),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (1, 2)),
    # Raised by pure modules, translated where a page shows them.
    **dict.fromkeys(("MalformedIdentifier", "malformed", "_malformed")),
}
# Which values of these are texts.
_ERRORS = ("ServiceError", "NotRegistered", "OnlyOperators", "OtherTaxpayer")
_RECORDS = ("Operation", "ByReason", "_operation", "Refusal")
_REFUSALS = (
    *("_invalid_request", "_invalid_client", "_invalid_grant", "_invalid_dpop_proof"),
    "_unauthorised_client",
)
_PLACES = {1: _ERRORS + _REFUSALS, 2: _RECORDS + _REFUSALS, 3: _RECORDS}
_ENGLISH = {"webhooks", "management"}  # no page shows what these folders say
_PLURALS = "nplurals=1; plural=0;"  # Babel knows none for Malay
_WIDTH = 100

Id = str | tuple[str, ...]


def sources() -> dict[Id, list[str]]:
    """Every text that is marked in the sources, with the files that have it."""
    found: dict[Id, list[str]] = {}
    for name, texts in _marked():
        for text in texts:
            files = found.setdefault(text, [])
            if name not in files:
                files.append(name)
    # A text that is counted somewhere serves also where it is not counted.
    counted = {text[0] for text in found if isinstance(text, tuple)}
    return {text: files for text, files in found.items() if text not in counted}


def read() -> Catalog:
    with PO.open("rb") as file:
        return read_po(file, locale=LANGUAGE)


def texts_of(catalogue: Catalog) -> dict[Id, Message]:
    return {_id_of(message): message for message in catalogue if message.id}


def translations_of(message: Message) -> list[str]:
    """The translation: one text, or one for each plural form of the language."""
    string = message.string or ""
    return [string] if isinstance(string, str) else list(string)


def update() -> list[Id]:
    """Writes the catalogue as the sources are now; the texts that want a translation."""
    before = read()
    catalogue = Catalog(
        locale=LANGUAGE,
        project="Token service",
        version="1",
        header_comment="# The texts of the staff's pages. Written by `make messages`.",
        msgid_bugs_address="the team",
        last_translator="the team",
        language_team="the team",
        creation_date=before.creation_date,
        revision_date=before.creation_date,
        fuzzy=False,
    )
    catalogue.mime_headers = [("Plural-Forms", _PLURALS)]
    known = texts_of(before)
    for text, files in sorted(sources().items(), key=lambda item: (item[1], str(item[0]))):
        string = known[text].string if text in known else ""
        catalogue.add(text, string, locations=[(name, 0) for name in files])
    with PO.open("wb") as file:
        write_po(file, catalogue, width=_WIDTH, include_lineno=False)
    return [
        text for text, message in texts_of(catalogue).items() if not all(translations_of(message))
    ]


def _id_of(message: Message) -> Id:
    return message.id if isinstance(message.id, str) else tuple(message.id)


def _marked() -> Iterator[tuple[str, list[Id]]]:
    for app in _APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts:
                name, source = path.relative_to(ROOT).as_posix(), path.read_text()
                yield name, _extracted(source)
                for place, words in _PLACES.items() if _ENGLISH.isdisjoint(path.parts) else ():
                    yield name, _extracted(source, dict.fromkeys(words, (place,)))
    for path in sorted((ROOT / "templates").rglob("*.*")):
        yield path.relative_to(ROOT).as_posix(), _extracted(_as_python(path.read_text()))
    texts = json.loads(LIBRARIES.read_text())
    yield LIBRARIES.name, [tuple(text) if isinstance(text, list) else text for text in texts]


def _as_python(template: str) -> str:
    # templatize blanks everything but the texts; an indent would mean a block to Python.
    return re.sub(r"(?m)^[ \t]+", "", templatize(template))


def _extracted(source: str, keywords: Any = _KEYWORDS) -> list[Id]:
    rows = extract("python", BytesIO(source.encode()), keywords=keywords)
    return [tuple(text) if isinstance(text, (list, tuple)) else text for _line, text, *_ in rows]


if __name__ == "__main__":
    wanted = update()
    for missing in wanted:
        sys.stdout.write(f"{PO.relative_to(ROOT)}: wants a translation: {missing!r}\n")
    sys.exit(bool(wanted))
