"""The kafka-fast command line: `main` parses, and a module for each command does the work.

A command's module has `add_parser(commands)`, which sets `run(args) -> exit status` as the
parser's default; `commands` has the table of these modules. A noun of an operator, such as
`topics`, is a table of verbs (`frame/`, `operators/`). Commands use only the public API, and import
heavy modules when they run.
"""
