"""What tests and benchmarks start beside a broker: peers, services and bad networks.

null_broker   acknowledges records and drops them: a C program
proxy         a network that is slow, narrow or cut
kdc           Kerberos
jars          Spark's connector, Apache's message definitions
"""
