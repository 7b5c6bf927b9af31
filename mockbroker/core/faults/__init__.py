"""Breaking a cluster on purpose: rules as data, and the engine that asks them.

Nouns: a *rule* says which requests it is for (`match`), which of those (`when`) and what then
happens (`do`). A *set* is what is added at once under one name: a seed, rules, and a *timeline* of
actions at given times. The *engine* is asked about every request and answers with *decisions*, one
for each rule that fires; an *effect* is what a decision does to the request, its answer or its
connection, an *action* what it does to the cluster. A request that a rule *holds* waits until
somebody lets it go on.

Nothing here waits, sends or reads a clock: effects are frozen data, which the connection's task
carries out.
"""
