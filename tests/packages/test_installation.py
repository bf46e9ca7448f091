"""`pip install` from the folder: nothing else is needed, and the service is not."""

import json
import os
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.servers.processes import CHECKOUT

PACKAGE = CHECKOUT / "packages" / "einvoicing_tokens"
# Imports the package and looks at a token; prints what that has imported.
PROGRAM = """
import json, sys
from einvoicing_tokens import InvalidToken, TokenVerifier
try:
    TokenVerifier("https://id.example.org", audience="InvoicingAPI").verify("e30.e30.e30")
except InvalidToken as refused:
    modules = {name.partition(".")[0] for name in sys.modules}
    print(json.dumps({"status": refused.status, "modules": sorted(modules)}))
"""

pytestmark = pytest.mark.processes


def install(wanted: Distribution, site: Path, done: set[str]) -> None:
    """Links an installed distribution, and what its metadata require, without its extras."""
    if wanted.name in done:
        return
    done.add(wanted.name)
    for name in {Path(file).parts[0] for file in wanted.files or ()} - {"..", "__pycache__"}:
        source = Path(str(wanted.locate_file(name)))
        if not (site / name).exists():
            (site / name).symlink_to(source)
    install_requirements(wanted.requires or [], site, done)


def install_requirements(requirements: list[str], site: Path, done: set[str]) -> None:
    for requirement in map(Requirement, requirements):
        extras = requirement.extras or {""}
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found = distribution(requirement.name)
            assert requirement.specifier.contains(found.version), requirement
            install(found, site, done)
            for extra in extras - {""}:
                wanted = [
                    text
                    for text in found.requires or []
                    if (marker := Requirement(text).marker) and marker.evaluate({"extra": extra})
                ]
                install_bare = [text.partition(";")[0] for text in wanted]
                install_requirements(install_bare, site, done)


def test_the_package_installs_from_its_folder_and_needs_nothing_of_the_service(
    tmp_path: Path,
) -> None:
    """Without a network: pip builds and installs it; its dependencies are those of this machine."""
    environment = {"PATH": os.environ["PATH"], "PIP_NO_INDEX": "1", "PIP_NO_INPUT": "1"}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    site = tmp_path / "site"
    subprocess.run(
        [*pip, "install", "--no-build-isolation", "--no-deps", "--target", site, PACKAGE],
        check=True,
        env=environment,
    )
    metadata = next(site.glob("*.dist-info"))
    installed = Distribution.at(metadata)
    assert (installed.name, installed.metadata["Requires-Python"]) == (
        "einvoicing-tokens",
        ">=3.10",
    )
    assert (site / "einvoicing_tokens" / "py.typed").is_file()
    venv.create(tmp_path / "venv", symlinks=True, with_pip=False)
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    names: set[str] = set()
    install_requirements(
        [text for text in installed.requires or [] if "extra ==" not in text], packages, names
    )
    for path in site.iterdir():
        (packages / path.name).symlink_to(path)
    assert names <= {"PyJWT", "pyjwt", "cryptography", "cffi", "pycparser", "urllib3"}
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "python", "-I", "-c", PROGRAM],
        check=True,
        env={"PATH": os.environ["PATH"]},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    answer = json.loads(done.stdout)
    assert answer["status"] == 401
    loaded = set(answer["modules"])
    assert {"einvoicing_tokens", "jwt", "urllib3"} <= loaded
    assert not loaded & {"django", "rest_framework", "flask", "fastapi", "identity", "tokens"}


def test_each_framework_is_an_extra_and_is_needed_by_its_adapter_alone() -> None:
    source = PACKAGE / "src" / "einvoicing_tokens"
    text = (PACKAGE / "pyproject.toml").read_text(encoding="utf-8")
    for extra in ("django", "fastapi", "flask"):
        assert f"\n{extra} = [" in text
        assert (source / f"{extra}.py").is_file()
