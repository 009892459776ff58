"""What an admin client asks of a cluster: one table of operations, and what carries them out.

    Admin.create_topics(…) ─► CreateTopics(…) ─► AdminControl ─► requester ─► brokers
                              an `Operation`                └─► results, item by item

`types/` has what users pass in and get back, `operations/` has a class for each operation. An
operation says what is sent and what the answers mean; `operation.py` does what all have in common.
"""
