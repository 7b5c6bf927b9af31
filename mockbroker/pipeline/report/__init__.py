"""Reports of the audit, for people and for programs.

Nouns: a *report* (`model.py`) is plain data: the runs and their gaps, an *outcome* for each rule,
the *cases* (a finding with the part of the journal around it), and the measurements. `build` makes
one from the findings of either engine; `html`, `formats` and `terminal` print it.

Names of topics, groups, clients and rules come from clients. They are hostile until
`words.printable` and the template have escaped them.
"""
