"""Tests of the house: that the tree keeps its own rules and the docs tell the truth."""
