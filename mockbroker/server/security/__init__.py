"""TLS and SASL of listeners: certificates, keys of tokens, and connections that authenticate."""
