"""`python -m shop till billing kitchen`: run programs one after the other.

`billing` and `kitchen` end when they have done what there is. One that fails is started again, up
to `--restarts` times, as whatever runs your programs does it.
"""

import argparse
import asyncio
import logging
import os
import sys

from aiokafka.errors import KafkaError

from shop import till
from shop.billing import Billing
from shop.kitchen import Kitchen
from shop.mistakes import MISTAKES

PROGRAMS = {"till": till.Till, "billing": Billing, "kitchen": Kitchen}


async def drain(program):
    await program.start()
    try:
        await program.drain()
    finally:
        await program.stop()


def run(name, make, bootstrap, settings):
    if name == "till":
        till.run(bootstrap, make)
    else:

        async def main():
            await drain(make(bootstrap, **settings))

        asyncio.run(main())


def main():
    parser = argparse.ArgumentParser(prog="shop", description=__doc__)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--mistake", metavar="PROGRAM:NAME", help=", ".join(MISTAKES))
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("--max-poll-interval-ms", type=int, default=300_000)
    parser.add_argument(
        "--bootstrap", default=os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092")
    )
    args = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it tells of all that it copes with
    made = dict(PROGRAMS)
    if args.mistake:
        program, _, mistake = args.mistake.partition(":")
        made[program] = MISTAKES[mistake]
    restarts = args.restarts
    for name in args.programs:
        while True:
            try:
                settings = {"max_poll_interval_ms": args.max_poll_interval_ms}
                run(name, made[name], args.bootstrap, settings)
                break
            except (KafkaError, OSError) as error:
                print(f"{name} failed: {error!r}", file=sys.stderr)
                if not restarts:
                    return 1
                restarts -= 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
