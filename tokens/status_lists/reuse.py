"""How long the bit of an ended index stays set, and when the index is used again. Pure."""

from datetime import timedelta

from tokens.lifetime import TOKEN_LIFETIME

# For clocks that differ, and for logins that were under way.
SET_FOR = TOKEN_LIFETIME + timedelta(minutes=5)
# Every process has cleared its bit by then.
REUSED_AFTER = SET_FOR + timedelta(minutes=5)
