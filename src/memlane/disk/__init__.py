"""Everything that touches the disk: names, durable files, the trash, append-only logs, and the two side files of every
bank (tombstones, anchors). What the other files mean is up to the lanes.
"""
