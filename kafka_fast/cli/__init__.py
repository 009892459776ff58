"""The kafka-fast command line: `main` parses, and one module for each command does the work.

A command's module has `add_parser(commands)`, which sets `run(args) -> exit status` as the
parser's default. Commands use only the public API, and import heavy modules when they run.
"""
