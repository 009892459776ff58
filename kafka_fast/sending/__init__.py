"""What a producer's user calls: records into queues, and handles that tell of their ends. Private.

The data plane drains the queues (`dataplane.produce`); all that holds the GIL on the way there and
back is here.

bulk  `send_many` and `send_table`: columns of many records into batches at once
"""
