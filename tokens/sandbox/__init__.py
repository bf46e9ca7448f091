"""What no state of the registry can do for a client of the sandbox: in the test environment."""
