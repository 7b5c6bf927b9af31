"""Client quotas: which are set, and what each broker measures against them."""
