"""Fault injection: rules as data, and the engine that evaluates them.

Nouns: a *rule* has the requests that it is for (`match`), its triggers (`when`) and its effects and
actions (`do`). A *plan* is added as a whole under one name: a seed, rules, and a *timeline* of
actions at given times. The *engine* evaluates the rules for every request and returns *decisions*,
one for each rule that fires. An *effect* changes the request, its answer or its connection; an
*action* changes the cluster. A rule can *hold* a request until it is released, answered, dropped or
closed.

Nothing here waits, sends or reads a clock: effects are frozen data, which the connection's task
carries out.
"""
