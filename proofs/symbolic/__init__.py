"""Symbolic and SMT checks for small vocabularies: each is a function that returns its finding.

Run all of them with ``python -m proofs.symbolic`` (``--json`` for machines). The formal proofs cover every
vocabulary size; these checks find witnesses, and prove the same statements a second time by other means.
"""
