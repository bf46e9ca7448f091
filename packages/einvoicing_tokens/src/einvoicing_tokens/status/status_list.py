"""One status list, unpacked (draft-ietf-oauth-status-list sections 4 and 5.1). Pure."""

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TYPE = "statuslist+jwt"  # section 5.1
VALID = 0  # section 7.1
_BITS = (1, 2, 4, 8)  # section 4.1

# 16,777,216 entries of one bit. What unpacks to more is no list, but an attack on the memory.
MAX_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StatusList:
    """The statuses of many tokens, each `bits` wide, the first in the lowest bits of a byte."""

    bits: int
    packed: bytes

    def status(self, index: int) -> int:
        """The status at this index. Raises IndexError if the list does not reach so far."""
        entries = 8 // self.bits
        if not 0 <= index < len(self.packed) * entries:
            raise IndexError("beyond the end of the status list")
        shift = index % entries * self.bits
        return self.packed[index // entries] >> shift & (1 << self.bits) - 1


def unpacked(claim: Mapping[str, Any]) -> StatusList:
    """The list in a claim `status_list`. Raises LookupError, TypeError or ValueError."""
    bits, encoded = claim["bits"], claim["lst"]
    if type(bits) is not int or bits not in _BITS:
        raise ValueError("bits is 1, 2, 4 or 8")
    compressed = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
    decompressor = zlib.decompressobj()
    try:
        packed = decompressor.decompress(compressed, MAX_BYTES)
    except zlib.error:
        raise ValueError("not compressed by zlib") from None
    if not decompressor.eof:  # cut off, or larger than MAX_BYTES
        raise ValueError("incomplete, or too large")
    return StatusList(bits, packed)
