"""Authentication and authorization: principals, SASL, ACLs, delegation tokens."""
