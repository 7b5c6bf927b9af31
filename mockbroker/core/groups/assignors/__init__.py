"""The assignors of the new group protocol, which run on the broker."""
