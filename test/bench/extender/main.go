// extender-bench measures numafit-extender beside the plugin that it stands for: one asks over HTTP as
// kube-scheduler does, the other is called in this process as kube-scheduler calls it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	"sigs.k8s.io/scheduler-plugins/apis/config/scheme"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology"

	"numafit/test/interop/scheduler/upstream"
)

const (
	patience = 60 * time.Second
	settle   = time.Second // after a start, before what it costs to be idle is looked at
)

var (
	extender   = flag.String("extender", "", "the program")
	dir        = flag.String("dir", "", "where its log and its settings are")
	byName     = flag.Int("names", 300, "requests by names of nodes, of each kind")
	byObject   = flag.Int("objects", 10, "requests by objects, of each kind")
	rounds     = flag.Int("rounds", 3, "in which the plugin is asked about every node")
	idle       = flag.Duration("idle", 5*time.Second, "how long wake-ups are counted")
	jsonFile   = flag.String("json", "", "append each row to this file")
	running    []*process
	strategies = []string{"LeastAllocated", "LeastNUMANodes"}
)

func check(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "extender-bench:", err)
	for _, p := range running {
		text, _ := os.ReadFile(p.log)
		fmt.Fprintf(os.Stderr, "%s:\n%s\n", p.title, text[max(0, len(text)-4096):])
		p.Process.Kill()
	}
	os.Exit(1)
}

// series of figures, by name.
type series map[string][]float64

func (s series) add(name string, value float64) { s[name] = append(s[name], value) }

// newPlugin is the plugin with its cache of topologies, which never resyncs here.
func newPlugin(ctx context.Context, q *upstream.Question) (framework.Plugin, error) {
	args, _, err := scheme.Codecs.UniversalDecoder().Decode(upstream.TypedArgs(q.Args, q.Plugin+"Args"), nil, nil)
	if err != nil {
		return nil, err
	}
	match, shared := args.(*config.NodeResourceTopologyMatchArgs), config.CacheInformerShared
	if match.Cache != nil {
		match.Cache.InformerMode = &shared
	}
	return noderesourcetopology.New(ctx, runtime.Object(match), newHandle(q))
}

// answers to one pod, node by node: -1 where it does not fit.
type answers map[string]int64

func spent() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// askPlugin asks it about every node; what is spent is printed for each node.
func askPlugin(c *cluster, s series, args []byte) answers {
	q := &upstream.Question{Plugin: noderesourcetopology.Name, Args: args}
	var infos []*framework.NodeInfo
	for i := range c.nodes {
		q.Nodes = append(q.Nodes, upstream.Candidate{Node: c.nodeTexts[i], Topology: c.topologies[i]})
		info := framework.NewNodeInfo()
		info.SetNode(c.nodes[i])
		infos = append(infos, info)
	}
	made, err := newPlugin(context.Background(), q)
	check(err)
	given := answers{}
	for range *rounds {
		var fit []*framework.NodeInfo
		from := spent()
		for _, info := range infos {
			if made.(framework.FilterPlugin).Filter(context.Background(), nil, c.pod, info).IsSuccess() {
				fit = append(fit, info)
			} else {
				given[info.Node().Name] = -1
			}
		}
		s.add("filter", float64(spent()-from)/float64(len(infos)))
		from = spent()
		for _, info := range fit {
			score, status := made.(framework.ScorePlugin).Score(context.Background(), nil, c.pod, info)
			if !status.IsSuccess() {
				check(status.AsError())
			}
			given[info.Node().Name] = score
		}
		s.add("prioritize", float64(spent()-from)/float64(len(fit)))
	}
	return given
}

// serving is numafit-extender and a client of it.
type serving struct {
	*process
	url    string
	client http.Client
}

func serve(c *cluster, args []byte) *serving {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	address := listener.Addr().String()
	check(listener.Close())
	settings := filepath.Join(*dir, "extender.yaml")
	check(os.WriteFile(settings, fmt.Appendf(nil, `{"apiVersion": "numafit.io/v1", "kind": "ExtenderConfiguration",
		"listen": %q, "kubeconfig": %q, "scoreMax": 100, "plugins": [{"name": %q, "args": %s}]}`,
		address, c.kubeconfig(), noderesourcetopology.Name, args), 0o600))
	s := &serving{process: start("numafit-extender", *extender, "--config", settings), url: "http://" + address}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if answer, err := s.client.Get(s.url + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(end) {
			check(fmt.Errorf("it is not ready"))
		}
	}
	return s
}

func (s *serving) ask(verb string, body []byte) []byte {
	answer, err := s.client.Post(s.url+"/numafit/"+verb, "application/json", bytes.NewReader(body))
	check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check(err)
	if answer.StatusCode != http.StatusOK {
		check(fmt.Errorf("%s: %s: %s", verb, answer.Status, text))
	}
	return text
}

// timed asks so many times; what the extender spends is printed for each node.
func (s *serving) timed(to series, name, verb string, body []byte, nodes, times int) (text []byte) {
	for range times {
		used, from := s.cpuTime(), time.Now()
		text = s.ask(verb, body)
		to.add(name, float64(time.Since(from)))
		to.add(name+" cpu", (s.cpuTime()-used)/float64(nodes))
	}
	return text
}

// question is what kube-scheduler sends.
type question struct {
	Pod       *v1.Pod
	Nodes     *nodeList
	NodeNames *[]string
}

type nodeList struct {
	Items []json.RawMessage `json:"items"`
}

func (c *cluster) names(wanted answers) *[]string {
	list := []string{}
	for _, n := range c.nodes {
		if wanted == nil || wanted[n.Name] >= 0 {
			list = append(list, n.Name)
		}
	}
	return &list
}

func (c *cluster) objects(wanted answers) *nodeList {
	list := &nodeList{}
	for i, n := range c.nodes {
		if wanted == nil || wanted[n.Name] >= 0 {
			list.Items = append(list.Items, c.nodeTexts[i])
		}
	}
	return list
}

// read are the answers of filter and prioritize, by name.
func read(c *cluster, filtered, scored []byte) answers {
	var f struct{ NodeNames []string }
	var list []struct {
		Host  string
		Score int64
	}
	check(json.Unmarshal(filtered, &f))
	check(json.Unmarshal(scored, &list))
	given := answers{}
	for _, n := range c.nodes {
		given[n.Name] = -1
	}
	for _, n := range f.NodeNames {
		given[n] = 0
	}
	for _, s := range list {
		given[s.Host] = s.Score
	}
	return given
}

func differ(ours, theirs answers) error {
	for name, want := range theirs {
		if ours[name] != want {
			return fmt.Errorf("%s: score %d, the plugin says %d (-1: it does not fit)", name, ours[name], want)
		}
	}
	return nil
}

func measure(c *cluster, strategy string, t *table) {
	args := fmt.Appendf(nil, `{"cacheResyncPeriodSeconds":3600,"scoringStrategy":{"type":%q}}`, strategy)
	fmt.Fprintln(os.Stderr, "asking about", len(c.nodes), "nodes by", strategy)
	ours, theirs := series{}, series{}
	wanted := askPlugin(c, theirs, args)
	s := serve(c, args)
	defer s.stop()
	s.footprint(ours)
	all, fit := text(question{c.pod, nil, c.names(nil)}), text(question{c.pod, nil, c.names(wanted)})
	nrFit := len(*c.names(wanted))
	filtered := s.timed(ours, "filter", "filter", all, len(c.nodes), *byName)
	scored := s.timed(ours, "prioritize", "prioritize", fit, nrFit, *byName)
	check(differ(read(c, filtered, scored), wanted))
	all, fit = text(question{c.pod, c.objects(nil), nil}), text(question{c.pod, c.objects(wanted), nil})
	ours.add("bytes", float64(len(all)))
	s.timed(ours, "filter-objects", "filter", all, len(c.nodes), *byObject)
	s.timed(ours, "prioritize-objects", "prioritize", fit, nrFit, *byObject)
	ours.add("rss-after", s.memory("Rss"))
	t.strategy(strategy, len(c.nodes), nrFit, ours, theirs)
}

func main() {
	flag.Parse()
	klog.SetLogger(logr.Discard())
	c := newCluster()
	t := newTable()
	for _, strategy := range strategies {
		measure(c, strategy, t)
	}
}
