"""How bytes get on and off the disk: durable files, append-only logs, and the side files of every bank (tombstones,
anchors). What a file means is a lane's business.
"""
