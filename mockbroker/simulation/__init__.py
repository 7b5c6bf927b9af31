"""The cluster as a program that is run on purpose through what might happen to it."""
