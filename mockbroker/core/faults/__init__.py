"""Fault injection: rules as data, and the engine that evaluates them.

Nouns: a *rule* says which requests it is for (`match`), which of those (`when`) and what then
happens (`do`). A *plan* is added as a whole under one name: a seed, rules, and a *timeline* of
actions at given times. The *engine* evaluates the rules for every request and returns *decisions*,
one for each rule that fires; an *effect* is what a decision does to the request, its answer or its
connection, an *action* what it does to the cluster. A request that a rule *holds* waits for a
verdict: go on, answer, drop or close.

Nothing here waits, sends or reads a clock: effects are frozen data, which the connection's task
carries out.
"""
