"""`pip install` from the folder: nothing else is needed, and the service is not."""

import json
import os
import subprocess
import sys
from importlib.metadata import Distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.servers.processes import CHECKOUT

PACKAGE = CHECKOUT / "packages" / "einvoicing_tokens"
# Imports the package, looks at a token, and prints what that has imported beside the language.
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
from einvoicing_tokens import InvalidToken, TokenVerifier
try:
    TokenVerifier("https://id.example.org", audience="InvoicingAPI").verify("e30.e30.e30")
except InvalidToken as refused:
    assert refused.status == 401
    names = {name.partition(".")[0] for name in set(sys.modules) - before}
    print(json.dumps(sorted(names - sys.stdlib_module_names)))
"""


@pytest.mark.processes
def test_the_package_installs_from_its_folder_and_needs_nothing_of_the_service(
    tmp_path: Path,
) -> None:
    """Without a network: pip builds and installs it; its dependencies are those of this machine."""
    environment = {"PATH": os.environ["PATH"], "PIP_NO_INDEX": "1", "PIP_NO_INPUT": "1"}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    options = ["--no-build-isolation", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*pip, "install", *options, str(PACKAGE)], check=True, env=environment)
    installed = Distribution.at(next(tmp_path.glob("*.dist-info")))
    assert installed.name == "einvoicing-tokens"
    assert installed.metadata["Requires-Python"] == ">=3.10"
    assert (tmp_path / "einvoicing_tokens" / "py.typed").is_file()
    (plug_in,) = installed.entry_points.select(group="pytest11")
    assert plug_in.value == "einvoicing_tokens.testing"
    needed = [Requirement(text) for text in installed.requires or [] if "extra ==" not in text]
    assert {each.name.lower() for each in needed} == {"pyjwt", "urllib3"}
    assert all(each.specifier.contains(version(each.name)) for each in needed)
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, tmp_path], check=True, capture_output=True, cwd="/"
    )
    third = {"jwt", "urllib3", "cryptography", "_cffi_backend", "_openssl"}
    loaded = set(json.loads(done.stdout))
    assert {"einvoicing_tokens", "jwt", "urllib3"} <= loaded <= {"einvoicing_tokens", *third}
