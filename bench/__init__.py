"""What a login costs, measured against its peers (`make bench`, docs/performance.md)."""
