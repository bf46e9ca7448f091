"""`python -m clientcheck`, in a checkout."""

import sys

from clientcheck.clientcheck import main

sys.exit(main())
