"""What `python -m bench` can measure: a module for each command."""
