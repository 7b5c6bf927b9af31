"""The journal: every event in order, within its memory.

Nouns: an *entry* is the stored form: the bytes of a request or an answer as on the wire. An *event*
is an entry decoded for a reader (`JournalEvent`). One answer may give several events: the answer
itself, and its deliveries. A *gap* stands for entries that left the journal before they were read.
"""
