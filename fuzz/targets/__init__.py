"""One file a target."""
