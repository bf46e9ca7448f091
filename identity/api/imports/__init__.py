"""Many records by one request: all of them or none."""
