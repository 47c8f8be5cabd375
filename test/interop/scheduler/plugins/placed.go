package main

import (
	"github.com/go-logr/logr"

	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology/logging"
)

// placed is a log in which the filter tells the NUMA node that it assumes: of each container, or of
// the whole pod, "*". It says so nowhere else.
type placed struct {
	zones     map[string][]int
	container string
}

const (
	assumedLevel = 4
	assumedKey   = "numaCell"
	wholePod     = "*"
)

func newPlaced() *placed { return &placed{zones: map[string][]int{}, container: wholePod} }

func (*placed) Init(logr.RuntimeInfo)          {}
func (*placed) Enabled(level int) bool         { return level <= assumedLevel }
func (*placed) Error(error, string, ...any)    {}
func (p *placed) WithName(string) logr.LogSink { return p }
func (p *placed) WithValues(kv ...any) logr.LogSink {
	named := *p
	for i := 0; i+1 < len(kv); i += 2 {
		if name, ok := kv[i+1].(string); ok && kv[i] == logging.KeyContainer {
			named.container = name
		}
	}
	return &named
}

func (p *placed) Info(_ int, message string, kv ...any) {
	if message != "container aligned" && message != "all container placed" {
		return
	}
	for i := 0; i+1 < len(kv); i += 2 {
		if zone, ok := kv[i+1].(int); ok && kv[i] == assumedKey {
			p.zones[p.container] = []int{zone}
		}
	}
}
