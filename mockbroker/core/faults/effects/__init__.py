"""What a rule does to a request, its answer or its connection: frozen structs, and pure functions
on decoded messages.
"""
