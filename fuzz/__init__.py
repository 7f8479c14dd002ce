"""Long runs that hunt for inputs on which the suite is wrong. Part of the repository, not of the package; see README.md."""
