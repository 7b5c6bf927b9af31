"""Tests of the handlers, called without a connection."""
