"""SASL as a broker speaks it: who the client of a connection is.

dialogue    the states of one connection: handshake, tokens, sessions that end
mechanisms  PLAIN, SCRAM and OAUTHBEARER, each a generator of tokens
"""
