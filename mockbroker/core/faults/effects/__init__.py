"""Effects of rules on requests, answers and connections: frozen structs, and pure functions on
decoded messages.
"""
