#!/usr/bin/env python3
"""`systemctl` for tests: runs what the units say, each as a real process, without systemd.

It knows the orders that docs/operations.md and deploy/upgrade give, drop-ins (systemd.unit(5)) and
Type=notify. The folder of the machine is $MACHINE; each unit that runs has a file with its pid.
"""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

MACHINE = Path(os.environ["MACHINE"])
UNITS = [MACHINE / folder / "systemd/system" for folder in ("usr/local/lib", "etc")]
RUNNING = MACHINE / "run"
SECONDS = 90.0


def files_of(unit: str) -> Iterator[Path]:
    """The unit and its drop-ins, in the order in which they count."""
    template = re.sub(r"@.*(?=\.service)", "@", unit)
    prefixes = [template[: found.end()] + ".service" for found in re.finditer("-", template)]
    yield from (UNITS[0] / name for name in {template} if (UNITS[0] / name).exists())
    names = {unit, template, *prefixes}
    found = [file for folder in UNITS for name in names for file in folder.glob(f"{name}.d/*.conf")]
    yield from sorted(found, key=lambda file: file.name)


def settings_of(unit: str) -> dict[str, list[str]]:
    """Each setting's values; an empty one deletes those before it."""
    found: dict[str, list[str]] = {}
    instance = unit.partition("@")[2].removesuffix(".service")
    for file in files_of(unit):
        text = file.read_text().replace("%i", instance)
        text = re.sub(r"(?<![\w./])/(etc|opt)\b", rf"{MACHINE}/\1", text)
        for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE):
            found[name] = [*found.get(name, []), value] if value else []
    return found


def start(unit: str) -> None:
    found = settings_of(unit)
    folder = found["WorkingDirectory"][-1]
    given = {"PATH": os.environ["PATH"]}
    lines = Path(found["EnvironmentFile"][-1]).read_text().splitlines()
    for name, value in (line.split("=", 1) for line in lines if line and line[0] != "#"):
        given[name] = value.strip("'")
    for command in found.get("ExecStartPre", []):
        subprocess.run(shlex.split(command), cwd=folder, env=given, check=True)
    socket_name = f"{MACHINE.name}-{unit}-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"\0{socket_name}")
        systemd.settimeout(0.1)
        with (MACHINE / f"{unit}.log").open("ab") as log:
            process = subprocess.Popen(
                shlex.split(found["ExecStart"][-1]),
                cwd=folder,
                env={**given, "NOTIFY_SOCKET": f"@{socket_name}"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (RUNNING / unit).write_text(str(process.pid))
        deadline = time.monotonic() + SECONDS
        while found["Type"] == ["notify"]:
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(1)
            with contextlib.suppress(TimeoutError):
                if systemd.recv(4096).startswith(b"READY=1"):
                    return


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def stop(unit: str) -> None:
    file = RUNNING / unit
    pid = int(file.read_text())
    if runs(pid):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + SECONDS
    while runs(pid):
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.05)
    file.unlink()


def full(name: str) -> str:
    return name if "." in name else f"{name}.service"


def main(order: str, *words: str) -> None:
    RUNNING.mkdir(exist_ok=True)
    with (MACHINE / "calls").open("a") as calls:
        calls.write(f"{' '.join([order, *words])}\n")
    names = [full(word) for word in words if not word.startswith("--")]
    if order in ("enable", "restart"):
        for unit in (name for name in names if name.endswith(".service")):
            if (RUNNING / unit).exists():
                stop(unit)
            start(unit)
    elif order == "list-units":
        units = sorted(path.name for path in RUNNING.iterdir())
        for unit in (unit for unit in units if any(fnmatch(unit, name) for name in names)):
            sys.stdout.write(f"{unit} loaded active running\n")
    elif order == "show":
        sys.stdout.write(f"ExecStart={{ argv[]={settings_of(names[0])['ExecStart'][-1]} }}\n")
    elif order == "is-active":
        sys.exit(not runs(int((RUNNING / names[0]).read_text())))


if __name__ == "__main__":
    main(*sys.argv[1:])
