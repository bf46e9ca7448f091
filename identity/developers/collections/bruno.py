"""The collection for Bruno: a zip of its files, each in Bru, the language of this program."""

import io
import json
import textwrap
import zipfile
from collections.abc import Iterable, Iterator

from django.conf import settings

from identity.developers.collections.requests import (
    DESCRIPTION,
    NAME,
    SECRETS,
    VARIABLES,
    Field,
    Request,
    folders_of,
    requests_of,
)

FOLDER = "einvoicing-tokens"
_BEGINNING = (1980, 1, 1, 0, 0, 0)  # the earliest of a zip: the same bytes whenever it is made
_STORE_TOKEN = """\
bru.setVar("reference", res.getHeader("correlationId"));
if (res.getStatus() === 200) {
  bru.setVar("access_token", res.getBody().access_token);
}"""


def bruno_zip(auth_url: str) -> bytes:
    """The folder of the collection, packed."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in bruno_files(auth_url).items():
            about = zipfile.ZipInfo(f"{FOLDER}/{path}", _BEGINNING)
            about.external_attr = 0o644 << 16  # by default it is not readable
            archive.writestr(about, text.encode(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def bruno_files(auth_url: str) -> dict[str, str]:
    """The text of each file by its path in the folder."""
    about = {"version": "1", "name": NAME, "type": "collection", "ignore": []}
    environment = [
        _pairs(
            "vars", [Field("base_url", auth_url), *(Field(*pair) for pair in VARIABLES.items())]
        ),
        "vars:secret [\n" + ",\n".join(f"  {name}" for name in SECRETS) + "\n]\n",
    ]
    files = {
        "bruno.json": json.dumps(about, indent=2),
        "collection.bru": _text("docs", DESCRIPTION),
        f"environments/{settings.ENVIRONMENT}.bru": "".join(environment),
    }
    for place, (folder, requests) in enumerate(folders_of(requests_of(auth_url)).items(), 1):
        meta = _pairs("meta", [Field("name", folder), Field("seq", str(place))])
        files[f"{folder}/folder.bru"] = meta
        for number, request in enumerate(requests, 1):
            files[f"{folder}/{request.id}.bru"] = "\n".join(_blocks(request, number))
    return files


def _blocks(request: Request, number: int) -> Iterator[str]:
    yield _pairs(
        "meta",
        [Field("name", request.name), Field("type", "http"), Field("seq", str(number))],
    )
    yield _pairs(
        request.method.lower(),
        [
            Field("url", "{{base_url}}" + request.path.replace("{", ":").replace("}", "")),
            Field("body", "formUrlEncoded" if request.form else "none"),
            Field("auth", "bearer" if request.bearer else "none"),
        ],
    )
    for name, fields in (
        ("params:query", request.query),
        ("params:path", request.parts_of_path),
        ("headers", request.headers),
        ("auth:bearer", [Field("token", request.bearer)] if request.bearer else ()),
        ("body:form-urlencoded", request.form),
    ):
        if fields:
            yield _pairs(name, fields)
    if request.stores_token:
        yield _text("script:post-response", _STORE_TOKEN)
    if request.expected:
        yield _text("tests", _tests(request))
    yield _text("docs", request.description or request.name)


def _pairs(name: str, fields: Iterable[Field]) -> str:
    """A block of names and values; one with ~ is not sent."""
    lines = [f"  {'' if each.is_sent else '~'}{each.name}: {each.value}\n" for each in fields]
    return f"{name} {{\n{''.join(lines)}}}\n"


def _text(name: str, text: str) -> str:
    """A block of text; indented, because a brace at the beginning of a line would end it."""
    return f"{name} {{\n{textwrap.indent(text, '  ')}\n}}\n"


def _tests(request: Request) -> str:
    """JavaScript that fails unless the answer is the expected one."""
    lines = [f"  expect(res.getStatus()).to.be.oneOf({json.dumps(list(request.expected))});"]
    if request.reason:
        page = json.dumps(f"/errors/{request.reason}>")
        lines.append(f'  expect(res.getHeader("Link")).to.include({page});')
    return "\n".join([f"test({json.dumps(request.name)}, function () {{", *lines, "});"])
