"""`make container`: builds the image, and runs it as in a production, by the tests of `drill`."""

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    drill = Path(__file__).with_name("drill.py")
    # The fixtures of the tests, which otherwise hold only in their folder.
    sys.exit(pytest.main(["-n", "0", "-p", "tests.conftest", str(drill), *sys.argv[1:]]))
