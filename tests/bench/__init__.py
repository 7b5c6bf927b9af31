"""The bench judges rightly; how fast anything is, no test asserts."""
