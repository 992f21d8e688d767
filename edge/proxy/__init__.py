"""The data path of one worker: client connections, exchanges with origins, and what they share."""
