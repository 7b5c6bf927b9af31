"""The journal: everything that happened, in order, as far back as its memory reaches.

Nouns: an *entry* is what the broker writes down on the way, as cheaply as it can: a request or an
answer is kept as the bytes that were on the wire. An *event* is what a reader gets: an entry opened
and named (`JournalEvent`). One answer may hold several events: the batches it acknowledged, the
records it delivered, the offsets it committed. A *gap* stands where the journal's memory ended
before a reader came.
"""
