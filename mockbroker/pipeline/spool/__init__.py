"""What the broker writes down for the pipeline, raw: entries of the journal on their way to tables.

Nouns: a *note* is one thing worth keeping, in order: an entry of the journal as it is, or what is
needed to read entries elsewhere (the topics there are, who is at the end of a connection). A
*spool* is a directory of files with notes, `<directory>/_spool/<run>/`; the converter reads it in a
process of its own, so that the broker has nothing to do but write.
"""
