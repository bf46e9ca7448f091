"""`make container`: the image is built, and run as in a production, by the tests of `drill`.

`python -m proofs.containers [ARGUMENTS OF PYTEST]`. Their files are checked by
`tests/proofs/test_container_files.py` in every run of the tests.
"""

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    drill = Path(__file__).with_name("drill.py")
    # The fixtures of the tests, which otherwise hold only in their folder.
    sys.exit(pytest.main(["-n", "0", "-p", "tests.conftest", str(drill), *sys.argv[1:]]))
