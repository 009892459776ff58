"""The records that a consumer returns, and how they are read from chunks. Private.

The data plane hands over chunks of answers (`dataplane.fetch._streams`); all that is made of them
with the GIL, for the user, is here: batches are checked and read, records and columns are views of
them, and the iterators of loops see how a loop ends.
"""
