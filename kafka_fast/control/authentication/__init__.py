"""Saying who this client is: the dialogue of SASL on a new link, and its mechanisms. No I/O."""
