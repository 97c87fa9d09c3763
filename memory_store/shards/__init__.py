"""Shards: nodes that hold a part of a vault's index each, asked over gRPC with mutual TLS.

Boundary: every node has the vault's key from its own operator; none travels. Between nodes travel
keyed hashes, query vectors, ordinals, scores and, where a collection's order in time is judged,
vectors of some memories. A node that does not show a certificate that is named is refused.
"""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
"""Or gRPC, when it is loaded, prints lines of its own about nodes that it refuses or misses."""
