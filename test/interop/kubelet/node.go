package main

var nodeForm = formOf("node", "machine", func(*random) *struct{} { return nil }, func(*struct{}) any { return nil }, func(*struct{}, value, value) string { return "" }, func(*struct{}, value, func(a, b string)) {})
