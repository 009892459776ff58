"""The kafka-fast command line: `main` parses, one module for each command does the work.

A command's module has `add_parser(commands)`, which sets `run(args) -> exit status` as the
parser's default. Commands use the public API only, and import what is heavy when they run.
"""
