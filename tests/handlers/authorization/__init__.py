"""Tests of the authorization before the handlers."""
