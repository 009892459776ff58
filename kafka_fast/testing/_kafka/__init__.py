"""Real Apache Kafka as a process. Private: `kafka_fast.testing.real_kafka` is the command for it.

broker_jars         Kafka's jars, from Maven
installation        what brokers need on disk; one node
java_process        a JVM, its ports and its end
real_kafka          a cluster
secure_kafka        a cluster with TLS, SASL and ACLs
identity_provider   signs the tokens of its users
"""
