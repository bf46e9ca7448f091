"""`deploy/manage` reads the settings as systemd does, not as a shell would."""

import pytest

from identity.configuration.setting_list import SETTINGS
from identity.configuration.systemd_file import assignments
from identity.configuration.texts import ENVIRONMENT_FILE

URL = "postgresql://identity@db.example.org/identity?sslmode=verify-full&sslrootcert=/etc/ca.pem"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (f"DATABASE_URL={URL}", URL),
        ("DATABASE_URL=a$HOME`id`;b c", "a$HOME`id`;b c"),
        ("DATABASE_URL='a\"b $c'", 'a"b $c'),
        ('DATABASE_URL="a\\"b \\$c \\n"', 'a"b $c \\n'),
        ("DATABASE_URL=a\\\nb", "ab"),
        ("  DATABASE_URL=  a b  ", "a b"),
        ("DATABASE_URL=a # b", "a # b"),
        ("DATABASE_URL=", ""),
        ("# A=b\n; C=d\n\nDATABASE_URL=a=b", "a=b"),
        ("DATABASE_URL=a\nDATABASE_URL=b", "b"),
    ],
)
def test_a_value_is_what_systemd_makes_of_it(line: str, value: str) -> None:
    assert assignments(line) == {"DATABASE_URL": value}


@pytest.mark.parametrize("line", ["DATABASE_URL", "1A=b", "export A=b", "A='b", 'A="b'])
def test_a_line_that_is_no_assignment_stops_the_command(line: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        assignments(f"# first\n{line}\n")


def test_the_file_that_we_give_away_is_read_as_it_was_written() -> None:
    read = assignments(ENVIRONMENT_FILE.read_text(encoding="utf-8"))
    usual = [setting.assignment.split("=", 1) for setting in SETTINGS.values() if setting.is_usual]
    assert read == dict(usual)
