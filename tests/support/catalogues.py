"""The catalogues of the staff's texts, in pure Python: `make messages` writes them.

Python is read by Babel; templates by Django's own `templatize`, whose result Babel reads. So
nobody needs GNU gettext, neither to write the catalogues nor to run or test the service.
"""

import json
import re
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation import templatize

ROOT = Path(__file__).resolve().parents[2]
LOCALE = ROOT / "locale"
# Texts of the theme and of the sign-in that staff see: neither library has a Malay catalogue.
LIBRARIES = LOCALE / "libraries.json"
LANGUAGES = ("en", "ms")
_APPS = ("identity", "taxpayers", "tokens")
# No pgettext: nothing here needs a context, so the id of a message is its text.
_KEYWORDS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop")),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (1, 2)),
    # Raised by pure modules, translated where a page shows them.
    **dict.fromkeys(("MalformedIdentifier", "malformed", "_malformed")),
}
_PLURALS = {"en": "nplurals=2; plural=(n != 1);", "ms": "nplurals=1; plural=0;"}
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
    # A text that is counted somewhere serves where it stands alone as well.
    counted = {text[0] for text in found if isinstance(text, tuple)}
    return {text: files for text, files in found.items() if text not in counted}


def read(language: str) -> Catalog:
    """The committed catalogue."""
    with po(language).open("rb") as file:
        return read_po(file, locale=language)


def po(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "django.po"


def compiled(catalogue: Catalog) -> bytes:
    """What Django reads: the contents of the .mo file."""
    file = BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()


def texts_of(catalogue: Catalog) -> dict[Id, Message]:
    """The texts of a catalogue, without its header."""
    return {_id_of(message): message for message in catalogue if message.id}


def translations_of(message: Message) -> list[str]:
    """The translation: one text, or one for each plural form of the language."""
    string = message.string or ""
    return [string] if isinstance(string, str) else list(string)


def update(language: str) -> list[Id]:
    """Writes the catalogue as the sources are now; the texts that want a translation."""
    before = read(language)
    catalogue = Catalog(
        locale=language,
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
    catalogue.mime_headers = [("Plural-Forms", _PLURALS[language])]  # Babel knows none for Malay
    known = texts_of(before)
    for text, files in sorted(sources().items(), key=lambda item: (item[1], str(item[0]))):
        # English is filled too, so that "complete" means the same for both.
        string = text if language == "en" else known[text].string if text in known else ""
        catalogue.add(text, string, locations=[(name, 0) for name in files])
    with po(language).open("wb") as file:
        write_po(file, catalogue, width=_WIDTH, include_lineno=False)
    po(language).with_suffix(".mo").write_bytes(compiled(read(language)))
    return [
        text for text, message in texts_of(catalogue).items() if not all(translations_of(message))
    ]


def _id_of(message: Message) -> Id:
    return message.id if isinstance(message.id, str) else tuple(message.id)


def _marked() -> Iterator[tuple[str, list[Id]]]:
    for app in _APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path.relative_to(ROOT).as_posix(), _extracted(path.read_text())
    for path in sorted((ROOT / "templates").rglob("*.*")):
        yield path.relative_to(ROOT).as_posix(), _extracted(_as_python(path.read_text()))
    texts = json.loads(LIBRARIES.read_text())
    yield LIBRARIES.name, [tuple(text) if isinstance(text, list) else text for text in texts]


def _as_python(template: str) -> str:
    # templatize blanks everything but the texts; an indent would mean a block to Python.
    return re.sub(r"(?m)^[ \t]+", "", templatize(template))


def _extracted(source: str) -> list[Id]:
    rows = extract("python", BytesIO(source.encode()), keywords=_KEYWORDS)
    return [tuple(text) if isinstance(text, (list, tuple)) else text for _line, text, *_ in rows]


if __name__ == "__main__":
    wanted = {language: update(language) for language in LANGUAGES}
    for language, texts in wanted.items():
        for text in texts:
            sys.stdout.write(f"{po(language).relative_to(ROOT)}: wants a translation: {text!r}\n")
    sys.exit(any(wanted.values()))
