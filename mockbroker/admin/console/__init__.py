"""The console: pages for a browser, at `/` of the admin server.

Nouns: an *asset* is a file below `assets/`, served as it is; there is no build step. A *page* is a
module below `assets/js/pages/` that shows answers of `/v1` and nothing else, so a program can do
all that the console can. *Vendored* assets are libraries of others, with their licences; the list
is `assets/vendor/vendored.json`.
"""
