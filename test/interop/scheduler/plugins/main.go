// Program plugins answers for the plugins of sigs.k8s.io/scheduler-plugins, and for
// NodeResourcesBalancedAllocation of the Kubernetes that they are built on: the real ones, called as
// the scheduler calls them.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	inTree "k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	"sigs.k8s.io/scheduler-plugins/apis/config/scheme"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesources"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology"

	"numafit/test/interop/scheduler/upstream"
)

type factory func(context.Context, runtime.Object, framework.Handle) (framework.Plugin, error)

var factories = map[string]factory{
	noderesourcetopology.Name:     newMatch,
	noderesources.AllocatableName: noderesources.NewAllocatable,
	inTree.BalancedAllocationName: newBalanced,
}

func newBalanced(ctx context.Context, args runtime.Object, h framework.Handle) (framework.Plugin, error) {
	return inTree.NewBalancedAllocation(ctx, args, h, feature.Features{})
}

// newMatch has the plugin follow pods by the scheduler's own informer, which is not started: pods
// that come and go matter only when it takes in a new topology, and no topology changes here.
func newMatch(ctx context.Context, args runtime.Object, h framework.Handle) (framework.Plugin, error) {
	shared := config.CacheInformerShared
	if a := args.(*config.NodeResourceTopologyMatchArgs); a.Cache != nil {
		a.Cache.InformerMode = &shared
	}
	return noderesourcetopology.New(ctx, args, h)
}

func newPlugin(ctx context.Context, q *upstream.Question) (framework.Plugin, error) {
	args, _, err := scheme.Codecs.UniversalDecoder().Decode(
		upstream.TypedArgs(q.Args, q.Plugin+"Args"), nil, nil)
	if err != nil {
		return nil, err
	}
	return factories[q.Plugin](ctx, args, newHandle(q))
}

// asker asks one plugin about one pod.
type asker struct {
	ctx    context.Context
	q      *upstream.Question
	plugin framework.Plugin
	pod    *v1.Pod
	state  *framework.CycleState
	placed *placed
}

func (a *asker) readPod(text []byte) *v1.Pod {
	pod := upstream.Must[v1.Pod](text)
	if a.q.Whole {
		makeWhole(pod)
	}
	return pod
}

func (a *asker) ask(c *upstream.Candidate) upstream.Node {
	node := upstream.Must[v1.Node](c.Node)
	info := framework.NewNodeInfo()
	for _, text := range c.Pods {
		pod := a.readPod(text)
		if p, ok := a.plugin.(framework.ReservePlugin); ok {
			p.Reserve(a.ctx, nil, pod, node.Name)
		}
		info.AddPod(pod)
	}
	info.SetNode(node)
	clear(a.placed.zones)
	return upstream.Try(node.Name, func(n *upstream.Node) {
		var status *framework.Status
		if p, ok := a.plugin.(framework.FilterPlugin); ok {
			status = p.Filter(a.ctx, a.state, a.pod, info)
		}
		n.Fits, n.Code = status.IsSuccess(), status.Code().String()
		if !n.Fits {
			n.Why = status.Reasons()
			return
		}
		n.Zones = maps.Clone(a.placed.zones)
		score, status := a.plugin.(framework.ScorePlugin).Score(a.ctx, a.state, a.pod, info)
		if !status.IsSuccess() {
			panic(fmt.Sprint("Score: ", status))
		}
		n.Score = &score
	})
}

func answer(q *upstream.Question) (out upstream.Answer) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	placed := newPlaced()
	plugin, err := newPlugin(klog.NewContext(ctx, logr.New(placed)), q)
	if err != nil {
		return upstream.Answer{Error: err.Error()}
	}
	a := asker{ctx: ctx, q: q, plugin: plugin, state: framework.NewCycleState(), placed: placed}
	for i := range q.Nodes {
		a.pod = a.readPod(q.Pod) // each node's own: the plugin may change it
		out.Nodes = append(out.Nodes, a.ask(&q.Nodes[i]))
	}
	normalise(ctx, plugin.(framework.ScorePlugin), out.Nodes)
	return out
}

// normalise makes scores of raw ones where the plugin does.
func normalise(ctx context.Context, plugin framework.ScorePlugin, nodes []upstream.Node) {
	extensions := plugin.ScoreExtensions()
	if extensions == nil {
		return
	}
	list := make(framework.NodeScoreList, len(nodes))
	for i, n := range nodes {
		list[i] = framework.NodeScore{Name: n.Name, Score: *n.Score}
		nodes[i].Raw = n.Score
	}
	if status := extensions.NormalizeScore(ctx, nil, nil, list); !status.IsSuccess() {
		panic(status)
	}
	for i := range nodes {
		nodes[i].Score = &list[i].Score
	}
}

func main() {
	klog.SetLogger(logr.Discard())
	if len(os.Args) > 1 && os.Args[1] == "bench" {
		bench(os.Stdout)
		return
	}
	upstream.Serve(os.Stdin, os.Stdout, answer)
}
