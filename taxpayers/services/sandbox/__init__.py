"""Changes of the clients of the sandbox: only in the test environment."""
