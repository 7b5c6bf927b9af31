"""Cases for brokers that have an authorizer: what each principal may do, and what it is told."""
