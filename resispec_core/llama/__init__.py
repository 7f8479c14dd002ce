"""Llama pairs: recorded logits, loading, recording. Importing it imports neither torch nor transformers."""
