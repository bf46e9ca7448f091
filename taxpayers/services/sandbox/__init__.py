"""Changes of the clients of the sandbox: in the test environment alone."""
