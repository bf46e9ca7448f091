"""What clients prove themselves with beside a secret: how the fuzzer makes and finds it."""
