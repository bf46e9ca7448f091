"""What the documents name exists: files, tests, make targets, commands and settings."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.core.management import get_commands
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.servers.processes import CHECKOUT

TRANSLATIONS = sorted((CHECKOUT / "docs" / "ms").glob("*.md"))
# Not the changelog, which also names what is gone.
DOCUMENTS = [
    *(CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((CHECKOUT / "docs").glob("*.md")),
    *TRANSLATIONS,
    CHECKOUT / "deploy" / "conformance" / "README.md",
    CHECKOUT / "proofs" / "README.md",
]
# Folders that `make` and a script create, an address, and what developers of ERP systems download.
NOT_FILES = (".venv/", ".bench/", "var/", "STAFF_URL/", "secrets/", "clientcheck.py")
# Placeholders for the name of a setting or of a command, a variable of psql, and one of CI.
PLACEHOLDERS = {"NAME_FILE", "COMMAND", "ON_ERROR_STOP", "CI_BASE"}

_BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)#:]+)[^)]*\)")
_PATH = re.compile(r"\.?\w[\w.-]*(?:/[\w.-]+)*(?:/|\.(?:py|md|ini|conf|toml|html|po|txt))")
_TEST = re.compile(r"\btest_\w+\b(?!\.py)")
_SETTING = re.compile(r"(?<![/\w])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b[A-Z][A-Z_]+(?==)")


def code_of(text: str) -> Iterator[str]:
    for block in _BLOCK.findall(text):
        yield from block.splitlines()
    yield from _INLINE.findall(_BLOCK.sub("", text))


def missing_paths(text: str, folder: Path) -> Iterator[str]:
    for code in code_of(text):
        for path in re.split(r"[\s=]+", code):
            if _PATH.fullmatch(path) and not path.startswith(NOT_FILES):
                places = (CHECKOUT / path, folder / path, *CHECKOUT.glob(f"tests/**/{path}"))
                if not any(place.exists() for place in places):
                    yield path
    for path in _LINK.findall(text):
        if not (folder / path).exists():
            yield path


def missing_tests(text: str) -> Iterator[str]:
    files = CHECKOUT.glob("tests/**/*.py")
    known = {
        name for file in files for name in re.findall(r"def (test_\w+)", file.read_text("utf-8"))
    }
    for code in code_of(text):
        if "/" not in code:
            yield from (name for name in _TEST.findall(code) if name not in known)


def missing_targets(text: str) -> Iterator[str]:
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    known = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    for code in code_of(text):
        yield from (name for name in re.findall(r"\bmake ([a-z-]+)", code) if name not in known)


def missing_commands(text: str) -> Iterator[str]:
    known = {*get_commands(), *PLACEHOLDERS}
    for code in code_of(text):
        yield from (name for name in re.findall(r"manage\.py (\w+)", code) if name not in known)
    for table in re.findall(r"^\| command \| does \|\n((?:\|.*\n)+)", text, re.MULTILINE):
        for row in table.splitlines()[1:]:
            for name in re.findall(r"`([a-z]+_[a-z_]+)", row.split("|")[1]):
                if name not in known:
                    yield name


@cache
def words_of_the_code() -> set[str]:
    folders = ("identity", "tokens", "taxpayers")
    files = [file for folder in folders for file in (CHECKOUT / folder).glob("**/*.py")]
    files += [CHECKOUT / "Makefile", CHECKOUT / ".ci/run"]
    files += [CHECKOUT / "deploy" / name for name in ("proxy.env", "manage")]
    files += [CHECKOUT / "deploy" / "container" / name for name in ("Containerfile", "example.env")]
    return {word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))}


def missing_settings(text: str) -> Iterator[str]:
    known = words_of_the_code()
    for code in code_of(text):
        for name in _SETTING.findall(code):
            if not {name, name.removesuffix("_FILE")} & known and name not in PLACEHOLDERS:
                yield name


def missing(text: str, folder: Path = CHECKOUT) -> list[str]:
    return [
        *missing_paths(text, folder),
        *missing_tests(text),
        *missing_targets(text),
        *missing_commands(text),
        *missing_settings(text),
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_what_a_document_names_exists(document: Path) -> None:
    assert missing(document.read_text(encoding="utf-8"), document.parent) == []


@pytest.mark.parametrize("file", TRANSLATIONS, ids=lambda path: path.name)
def test_a_translation_says_the_same_in_other_words(file: Path) -> None:
    """Block for block the same headings, lists and tables, with the same code and links."""
    original = (CHECKOUT / "docs" / file.name).read_text(encoding="utf-8")
    texts = (file.read_text(encoding="utf-8").replace("](../", "]("), original)
    ours, theirs = (MarkdownIt("commonmark").enable("table").parse(text) for text in texts)
    assert [token.type for token in ours] == [token.type for token in theirs]
    for token, other in zip(ours, theirs, strict=True):
        assert _untranslated(token) == _untranslated(other), token.content


def _untranslated(token: Token) -> list[str]:
    """A block of code; of any other block the code and the links."""
    code = [token.content] if token.type == "fence" else []
    for part in token.children or ():
        link = str(part.attrs.get("href", ""))
        code += [part.content] if part.type == "code_inline" else [link.partition("#")[0]]
    return sorted(filter(None, code))


# A test in its file: tests/test_reprs.py::test_a_value_cannot_be_changed
_TEST_IN_FILE = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)")


def rows_of_promises(text: str) -> Iterator[tuple[str, str]]:
    """Each promise of the tables, with the cell that names its tests."""
    for table in re.findall(
        r"^\| promise \| test \|\n\|[- |]+\|\n((?:\|.*\n)+)", text, re.MULTILINE
    ):
        for row in table.splitlines():
            promise, _, tests = row.strip("| ").partition(" | ")
            yield promise, tests


def unproved_promises(text: str) -> Iterator[str]:
    """Promises without a test, or with one that is not in the file that it names."""
    for promise, tests in rows_of_promises(text):
        named = _TEST_IN_FILE.findall(tests)
        if len(named) != len(_INLINE.findall(tests)) or not named:
            yield promise
        for path, name in named:
            file = CHECKOUT / path
            if not file.is_file() or f"def {name}(" not in file.read_text(encoding="utf-8"):
                yield promise


def test_every_promise_of_the_threat_model_names_its_test() -> None:
    text = (CHECKOUT / "docs" / "security.md").read_text(encoding="utf-8")
    assert len(list(rows_of_promises(text))) >= 40
    assert text.count("| promise | test |") == text.count("| --- | --- |")
    assert list(unproved_promises(text)) == []
