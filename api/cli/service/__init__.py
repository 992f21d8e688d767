"""`frontage service`: what runs the roles on a server, as files for systemd and for containers."""
