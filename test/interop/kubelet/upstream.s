// Here so that upstream.go may declare functions without a body.
