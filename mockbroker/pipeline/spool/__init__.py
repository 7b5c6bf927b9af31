"""A spool: the journal of one run on disk, until it is converted to tables.

Nouns: a *spool* is a directory of files, `<directory>/_spool/<run>/`. They hold the entries of the
journal, without secrets, and the data for decoding them elsewhere: the topics at the start of the
run and the clients of connections. Another process converts the spool, so that the broker only
writes.
"""
