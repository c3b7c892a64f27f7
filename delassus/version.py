"""The version of this package, as in package.xml."""

__version__ = "0.1.0"
