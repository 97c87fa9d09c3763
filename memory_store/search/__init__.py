"""The search pipeline, one stage a module, in the order data goes through them."""
