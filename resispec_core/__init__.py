"""Says exactly whether a speculative-sampling verifier keeps the target model's distribution."""

__version__ = "0.1.0.dev0"
