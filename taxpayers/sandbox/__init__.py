"""The sandbox of the test environment: clients that anybody may use."""
