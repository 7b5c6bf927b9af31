"""The cluster as it was at an entry of its journal.

Nouns: an *image* is the state of a cluster at one entry, as far as the journal has it; None
stands for an unknown value. Applying the entries behind it gives a later image. A *checkpoint*
is an image that is kept, so that the next moment is near one.

A journal may begin in the middle of a cluster's life. The image at its beginning is then the image
at its end without what the entries changed: events name the state before them.
"""
