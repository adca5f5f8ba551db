"""Work that runs in slices on a cluster: what reads a server elsewhere gives the same as what reads it here.

The coordinator knows every answer that a slice has read, and sends it along where it is needed again. An answer that
the targets of a server share (a listing, a channel) is read in one place, once, and then goes to all later slices.
"""
