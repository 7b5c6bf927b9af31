"""Reports: what they say, in every form, and that nobody can write into them."""
