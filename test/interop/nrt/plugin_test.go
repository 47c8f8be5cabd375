package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	"sigs.k8s.io/scheduler-plugins/apis/config/scheme"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology"
)

// The plugin as the scheduler runs it, at verbosity 6. What it says then is listened to.

const verbosity = 6

// words are said by the plugin in every run, of its configuration and of pods; all else that it says
// without being asked is a complaint.
var words = []string{
	"foreign pods detection value missing", "cannot determine the scheduler profile names - no foreign pod detection enabled",
	"cannot calculate how many NUMA nodes are required", // of a pod for which there is no room
}

// said is what the plugin has said, as a log.
type said struct {
	lock       *sync.Mutex
	zones      *int // whose resources it has read
	complaints *[]string
}

func newSaid() said { return said{&sync.Mutex{}, new(int), new([]string)} }

func (said) Init(logr.RuntimeInfo)            {}
func (said) Enabled(level int) bool           { return level <= verbosity }
func (s said) WithName(string) logr.LogSink   { return s }
func (s said) WithValues(...any) logr.LogSink { return s }
func (s said) complain(text string, kv ...any) {
	*s.complaints = append(*s.complaints, fmt.Sprint(text, kv))
}
func (s said) Error(err error, m string, kv ...any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.complain(m, append(kv, err)...)
}

func (s said) Info(level int, m string, kv ...any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	switch {
	case m == "extracted NUMA resources":
		*s.zones++
	case m == "missing": // a zone without a resource that another one has
		s.complain(m, kv...)
	case level <= 1 && !slices.Contains(words, m):
		s.complain(m, kv...)
	}
}

// handle is what a plugin needs of the scheduler.
type handle struct {
	framework.Handle
	config *rest.Config
}

var nobodyAsks = informers.NewSharedInformerFactory(nil, 0)

func (h handle) KubeConfig() *rest.Config                               { return h.config }
func (h handle) SharedInformerFactory() informers.SharedInformerFactory { return nobodyAsks }

type plugin struct {
	framework.FilterPlugin
	framework.ScorePlugin
	ctx  context.Context
	said said
}

func newPlugin(t *testing.T, o *objects, strategy string) *plugin {
	t.Helper()
	heard := newSaid()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.New(heard)))
	t.Cleanup(cancel)
	text := fmt.Sprintf(`{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourceTopologyMatchArgs",
		"scoringStrategy": {"type": %q}}`, strategy)
	args, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	shared := config.CacheInformerShared
	args.(*config.NodeResourceTopologyMatchArgs).Cache.InformerMode = &shared
	made, err := noderesourcetopology.New(ctx, args, handle{config: o.config()})
	if err != nil {
		t.Fatal(err)
	}
	return &plugin{made.(framework.FilterPlugin), made.(framework.ScorePlugin), ctx, heard}
}

// answer of the plugin, or of `numafit score`, about one node.
type answer struct {
	Fits  bool     `json:"fits"`
	Code  string   `json:"code"`
	Why   []string `json:"why"`
	Score *int64   `json:"score"`
}

func (a answer) String() string { return string(asJSON(a)) }

func (p *plugin) ask(t *testing.T, node *v1.Node, pod *v1.Pod) (a answer) {
	t.Helper()
	info := framework.NewNodeInfo()
	info.SetNode(node)
	state := framework.NewCycleState()
	status := p.Filter(p.ctx, state, pod.DeepCopy(), info)
	a = answer{Fits: status.IsSuccess(), Code: status.Code().String(), Why: []string{}}
	if !a.Fits {
		a.Why = status.Reasons()
		return a
	}
	score, status := p.Score(p.ctx, state, pod.DeepCopy(), info)
	if !status.IsSuccess() {
		t.Fatalf("Score: %v", status)
	}
	a.Score = &score
	return a
}

// question is what `numafit score` is asked.
type question struct {
	Name   string      `json:"name"`
	Plugin string      `json:"plugin"`
	Compat bool        `json:"compat"`
	Args   any         `json:"args"`
	Nodes  []candidate `json:"nodes"`
	Pod    *v1.Pod     `json:"pod"`
}

type candidate struct {
	Node     *v1.Node        `json:"node"`
	Topology json.RawMessage `json:"topology"`
}
