"""The admin API under `/v1`: views of a cluster, its clock, fault plans, journal and snapshots.

Each endpoint is declared once, with the structs of its input and output. The dispatcher and the
OpenAPI document are made from the declarations.
"""
