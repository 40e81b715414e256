"""The session host: one detached, single-threaded process per live Session that owns one child process tree.

Its modules run under `-I -S` and import only the stdlib (and ptyprocess in the PTY driver), nothing slow to load.
"""
