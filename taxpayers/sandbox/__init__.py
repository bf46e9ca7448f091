"""The sandbox of the test environment: clients that anyone may use."""
