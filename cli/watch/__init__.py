"""graph-watch: the live view of a graph. Only `app`, `dialogs` and `lines` load textual, the rest is plain."""
