"""Mutation testing: `make mutants` changes the source in small ways, and the tests have to notice.

- A *site* is a place in the source that an operator can change. A *mutant* is the source with one
  change.
- `listing` makes mutants: of Python with the operators of cosmic-ray and of `statements`, of SQL
  with those of `sql`. It runs in an environment of its own, because only it needs cosmic-ray.
- `mirror` names the tests that judge a module: its own first, then those of its package, then
  whole simulated clusters.
- `judge` runs them on a copy of the checkout, each time in a fork with a limit of CPU time.
- A mutant is *killed* if a test fails or the limit is reached. It *survives* otherwise.
  `equivalent.toml` lists survivors that no test can tell from the original, with the reason.

cosmic-ray's own runner has one test command for all modules, and mutmut changes only what is inside
functions: the literal tables of our state machines would stay as they are.
"""
