"""Connections to origins: who may have one (`pool`, pure), how one is made (`connector`), and the thing itself."""
