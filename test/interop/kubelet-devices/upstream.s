// Here so that upstream.go may declare a function without a body.
