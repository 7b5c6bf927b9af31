"""Hostile bytes: what a stranger may send, store or upload, and what may come of it.

A *target* reads bytes: a codec, the record batches, a broker. An *input* is bytes for a target; its
number alone makes it, so a number replays it. A *law* holds for each input of each target:

- the target reads the bytes, or refuses them with the error that its contract names; any other
  exception, and anything that a broker logs as an error, is a bug;
- it takes at most 250 ms of work;
- it takes at most 2 × the input + 1 MiB of memory, unless the target's docstring says why more.

`make fuzz` runs 300,000 inputs, the same ones each time; `make fuzz SEED=7` runs others. An input
that breaks a law is a *finding*: it is written to `build/fuzz/`, with the command that replays it.

*Work* is CPU time of the thread, not wall time, in units of a reference: a fixed piece of Python,
timed beside the suspect (`work.py`). A machine that is ten times slower, or shared with others,
takes ten times as long for both. An input is a finding only if three more runs say so, each with
garbage collected before. *Memory* is the peak of tracemalloc, on a sample of the inputs, because
tracemalloc makes Python four times slower.

Why not atheris: its inputs come from the history of a run, so no number replays one; it ends its
process; and its wheel has 35 MB. Here coverage is used where it pays, when the corpus is
made (`make fuzz-corpus`): inputs that reach new lines are kept, and mutated by later runs.
"""
