"""The admin API under `/v1`: watch a cluster, steer it, break it, and say what must have been.

Each endpoint is declared once, with the structs it takes and gives; the dispatcher and the OpenAPI
document are made from the declarations.
"""
