"""The console: pages for a browser, at `/` of the admin server.

Noun: an *asset* is a file below `assets/`, served as it is; there is no build step. A module below
`assets/js/pages/` shows answers of `/v1` and nothing else, so a program can do all that the console
can. Libraries of others are below `assets/vendor/` with their licences; the list is
`assets/vendor/vendored.json`.
"""
