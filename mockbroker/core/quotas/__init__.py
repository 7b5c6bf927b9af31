"""Client quotas, and the throttling of clients by them."""
