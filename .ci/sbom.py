"""Check that a bill of materials names what `requirements.txt` pins, each with its version.

    python .ci/sbom.py var/sbom.json requirements.txt

`make sbom` calls it, so that a list with gaps is never taken for a whole one.
"""

import json
import re
import sys
from pathlib import Path

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)(?: *;([^\\]*))?", re.MULTILINE)


def main(bill: Path, requirements: Path) -> int:
    """1 if the bill lacks a package, or names one that is not pinned; else 0."""
    components = json.loads(bill.read_text(encoding="utf-8"))["components"]
    listed = {(_normal(part["name"]), part["version"]) for part in components}
    pinned = _PINNED.findall(requirements.read_text(encoding="utf-8"))
    known = {(_normal(name), version) for name, version, _marker in pinned}
    needed = {(_normal(name), version) for name, version, marker in pinned if not marker.strip()}
    for name, version in sorted(needed - listed):
        sys.stderr.write(f"{bill} lacks {name} {version}\n")
    for name, version in sorted(listed - known):
        sys.stderr.write(f"{bill} has {name} {version}, which {requirements} does not pin\n")
    sys.stdout.write(f"{bill}: {len(listed)} packages\n")
    return int(bool(needed - listed or listed - known))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
