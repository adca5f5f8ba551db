"""The command line: one module for each command; the only package that prints or exits."""
