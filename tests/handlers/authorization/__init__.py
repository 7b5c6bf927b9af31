"""Tests of what stands in front of the handlers when there is an authorizer."""
