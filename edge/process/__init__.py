"""The processes of the edge: upgrade parent, supervisor and workers, their listening sockets and messages."""
