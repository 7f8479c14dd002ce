"""Llama pairs: recorded logits, loading, recording. Importing this room imports neither torch nor transformers."""
