"""The operations of an admin client, in a module for each subject.

An operation belongs here as soon as a class below extends `Operation`: nothing lists them but the
methods of `Admin`, one for each.
"""
