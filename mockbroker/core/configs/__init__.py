"""Configs: definitions, layers of values, views and changes."""
