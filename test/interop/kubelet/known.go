package main

import "k8s.io/utils/cpuset"

func knownCPU(q *cpuQuestion, upstream, ours value) string { return "" }

var _ = cpuset.New
