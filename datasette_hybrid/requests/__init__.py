"""What pages and endpoints share: reading a request, letting it in, framing its answer."""
