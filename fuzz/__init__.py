"""Long runs that hunt for inputs on which the suite is wrong. Not part of the package; see README.md."""
