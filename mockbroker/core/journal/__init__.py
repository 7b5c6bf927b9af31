"""The journal: everything that happened, in order, as far back as its memory reaches.

Nouns: an *entry* is what the journal stores, as cheaply as it can: a request or an answer is the
bytes of the wire. An *event* is an entry decoded for a reader (`JournalEvent`). One answer may give
several events: the answer itself, and its deliveries. A *gap* stands for entries that the journal
forgot before a reader came.
"""
