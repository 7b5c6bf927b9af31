"""Reports: their content in every form, with hostile names escaped."""
