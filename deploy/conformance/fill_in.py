"""Registers two clients for the OpenID Foundation's conformance suite; writes its configuration.

    python deploy/conformance/fill_in.py TIN FILE

It fills in private-key-jwt-dpop.json for a registered taxpayer, and runs manage.py with the
settings of this shell, so on the service that these name. FILE holds private keys: only its owner
can read it.
"""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from jwt.algorithms import ECAlgorithm

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
TEMPLATE = HERE / "private-key-jwt-dpop.json"
CLIENTS = ("client", "client2")  # the suite looks whether one can use what is the other's


def main(arguments: Sequence[str] | None = None) -> None:
    """The command. Exits with a message if it cannot write the file or register a client."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("taxpayer", metavar="TIN[:ROB]")
    parser.add_argument("file", type=Path)
    given = parser.parse_args(arguments)
    try:
        descriptor = os.open(given.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        sys.exit(f"{given.file} cannot be written: {error.strerror}. Nothing was registered.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(configuration(given.taxpayer), file, indent=2)


def configuration(taxpayer: str) -> dict[str, Any]:
    """The template with what was registered."""
    filled: dict[str, Any] = json.loads(TEMPLATE.read_text(encoding="utf-8"))
    issuer = ""
    for name in CLIENTS:
        private = _new_jwk(name)
        issued = _register(taxpayer, private)
        filled[name] |= {"client_id": issued["client_id"], "jwks": {"keys": [private]}}
        issuer = issued["issuer"]
    for part in (filled["server"], filled["resource"]):
        part |= {key: text.replace("{ISSUER}", issuer) for key, text in part.items()}
    return filled


def _new_jwk(name: str) -> dict[str, str]:
    # The suite signs with it, and asks for kid and alg.
    members: dict[str, str] = json.loads(ECAlgorithm.to_jwk(generate_private_key(SECP256R1())))
    members.pop("key_ops", None)
    return members | {"kid": f"conformance-{name}", "alg": "ES256", "use": "sig"}


def _register(taxpayer: str, private: dict[str, str]) -> dict[str, Any]:
    public = {member: value for member, value in private.items() if member != "d"}
    with NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as jwks:
        json.dump(public, jwks)
        jwks.flush()
        issued = _manage(
            *("issue_credentials", taxpayer, "--name", f"Conformance suite, {private['kid']}"),
            *("--jwks", jwks.name, "--logins-per-minute", "0"),
        )
    _manage("change_system_user", issued["client_id"], "--token-binding", "dpop")
    return issued


def _manage(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(  # noqa: S603 - no shell, and the arguments are those of this command
        [sys.executable, "manage.py", *arguments, "--json"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    main()
