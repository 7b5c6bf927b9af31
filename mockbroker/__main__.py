"""`python -m mockbroker`: the command line."""

from mockbroker.cli import main

main(prog_name="mockbroker")
