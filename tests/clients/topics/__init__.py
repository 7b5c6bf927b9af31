"""Topics as real clients see, make, grow and lose them."""
