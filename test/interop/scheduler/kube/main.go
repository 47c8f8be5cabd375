// Program kube answers for the node-resources plugins of kube-scheduler: the real ones, called as
// the scheduler calls them.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gates "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"numafit/test/interop/scheduler/upstream"
)

// handle is of a cluster without DeviceClasses.
type handle struct{ fwk.Handle }
type devices struct{ fwk.SharedDRAManager }
type noClasses struct{}

func (handle) SharedDRAManager() fwk.SharedDRAManager                     { return devices{} }
func (devices) DeviceClassResolver() fwk.DeviceClassResolver              { return noClasses{} }
func (noClasses) GetDeviceClass(v1.ResourceName) *resourceapi.DeviceClass { return nil }

type factory func(context.Context, runtime.Object, fwk.Handle, feature.Features) (fwk.Plugin, error)

var factories = map[string]factory{
	noderesources.Name:                   noderesources.NewFit,
	noderesources.BalancedAllocationName: noderesources.NewBalancedAllocation,
}

func newPlugin(ctx context.Context, q *upstream.Question) (fwk.Plugin, error) {
	args, _, err := scheme.Codecs.UniversalDecoder().Decode(
		upstream.TypedArgs(q.Args, q.Plugin+"Args"), nil, nil)
	if err != nil {
		return nil, err
	}
	return factories[q.Plugin](ctx, args, handle{},
		feature.NewSchedulerFeaturesFromGates(gates.DefaultFeatureGate))
}

func nodeInfo(c *upstream.Candidate) *framework.NodeInfo {
	info := framework.NewNodeInfo()
	for _, text := range c.Pods {
		info.AddPod(upstream.Must[v1.Pod](text))
	}
	info.SetNode(upstream.Must[v1.Node](c.Node))
	return info
}

func answer(q *upstream.Question) (a upstream.Answer) {
	ctx := context.Background()
	plugin, err := newPlugin(ctx, q)
	if err != nil {
		return upstream.Answer{Error: err.Error()}
	}
	pod, state := upstream.Must[v1.Pod](q.Pod), framework.NewCycleState()
	if p, ok := plugin.(fwk.PreFilterPlugin); ok {
		if _, status := p.PreFilter(ctx, state, pod, nil); !status.IsSuccess() {
			panic(status) // it never refuses
		}
	}
	scores := true
	if p, ok := plugin.(fwk.PreScorePlugin); ok {
		status := p.PreScore(ctx, state, pod, nil)
		if scores = status.IsSuccess(); !scores {
			a.PreScore = status.Code().String()
		}
	}
	for i := range q.Nodes {
		info := nodeInfo(&q.Nodes[i])
		a.Nodes = append(a.Nodes, upstream.Try(info.Node().Name, func(n *upstream.Node) {
			var status *fwk.Status
			if p, ok := plugin.(fwk.FilterPlugin); ok && !q.Unfiltered {
				status = p.Filter(ctx, state, pod, info)
			}
			n.Fits, n.Code = status.IsSuccess(), status.Code().String()
			if !n.Fits {
				n.Why = upstream.SortReasons(status.Reasons())
			} else if scores {
				score, status := plugin.(fwk.ScorePlugin).Score(ctx, state, pod, info)
				if !status.IsSuccess() {
					panic(fmt.Sprint("Score: ", status))
				}
				n.Score = &score
			}
		}))
	}
	return a
}

func main() {
	klog.SetLogger(logr.Discard())
	upstream.Serve(os.Stdin, os.Stdout, answer)
}
