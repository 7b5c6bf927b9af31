"""The interface for code that blocks, generated from `aio`."""
