"""Somebody's package, for the documents: its samplers are audited as they are."""
