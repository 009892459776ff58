"""The properties of TLS and SASL: their keys, their syntax, and the settings that come of them."""
