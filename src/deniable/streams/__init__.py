"""Private streams."""
