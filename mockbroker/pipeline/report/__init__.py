"""Reports of the audit, for people and for programs.

Nouns: a *report* (`model.py`) is plain data: the runs and what is missing of them, an *outcome* for
each rule, the *cases* (a finding with the part of the journal around it), and what was measured.
`build` makes one from the findings of either engine; `html`, `formats` and `terminal` show it.

Names of topics, groups, clients and rules come from clients. They are hostile until
`words.printable` and the template have escaped them.
"""
