"""Client of etcd on the loop: gRPC over HTTP/2 without a thread of its own."""
