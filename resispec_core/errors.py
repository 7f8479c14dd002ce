"""The two errors a user of the suite can meet on purpose."""


class InputError(ValueError):
    """Something handed to the suite is unusable.

    The message names the value, the place (row, token, file) and the remedy. The command line prints it
    without a traceback and exits with status 2.
    """


class BudgetExceededError(RuntimeError):
    """An exact computation would need more work than the stated budget allows; nothing was truncated."""
