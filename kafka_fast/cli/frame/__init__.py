"""What the commands of an operator share.

    a module of cli/operators         cli/frame                        cli/showing
    Noun("topics", (Verb, …))  ──►  parser, hints, default verb
    Verb.run(admin, args)      ──►  opens the Admin, asks first   ──►  Report as text, table, JSON

A further command is one more `Verb` in its noun's row, with a function that returns a `Report`.
"""
