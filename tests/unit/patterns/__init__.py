"""Every pattern of the product takes linear time, whatever it is fed."""
