package interop

import (
	"context"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	nrtcache "sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology/cache"
)

// The plugin's over-reserve cache: what it assumes of a pod it gives up when our object says that it
// accounts for that pod, and not before.

type overReserve struct {
	*testing.T
	cache *nrtcache.OverReserve
	pods  cache.Indexer
}

func newOverReserve(t *testing.T, o *objects) *overReserve {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := topology.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(o.config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	onlyResources := config.CacheResyncScopeOnlyResources
	made, err := nrtcache.NewOverReserve(ctx, logr.New(newSaid()), &config.NodeResourceTopologyCache{ResyncScope: &onlyResources},
		c, listers.NewPodLister(pods), func(logr.Logger, *v1.Pod) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return &overReserve{t, made, pods}
}

// bind is a pod that the scheduler has bound to the node.
func (o *overReserve) bind(name string, cpus int64) *v1.Pod {
	o.Helper()
	list := v1.ResourceList{"cpu": *resource.NewQuantity(cpus, resource.DecimalSI), "memory": *resource.NewQuantity(gi, resource.BinarySI)}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1.PodSpec{NodeName: nodeName,
		Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: list, Limits: list}}}}}
	p.Status.Phase = v1.PodRunning
	o.cache.ReserveNodeResources(nodeName, p)
	if err := o.pods.Add(p); err != nil {
		o.Fatal(err)
	}
	return p
}

// shows is what the scheduler thinks is free, after it has tried to get to know it better.
func (o *overReserve) shows(p *v1.Pod) []int64 {
	o.Helper()
	o.cache.NodeMaybeOverReserved(nodeName, p)
	o.cache.Resync()
	object, _ := o.cache.GetCachedNRTCopy(context.Background(), nodeName, p)
	if object == nil {
		o.Fatal("the cache has no topology")
	}
	return free(object, "cpu")
}

func TestTheOverReserveCacheTakesOurFingerprintForIt(t *testing.T) {
	for _, method := range []string{"all", "with-exclusive-resources"} {
		r := newRig(t, "kep3545-8.machine", "nodeResourceTopology.podsFingerprint="+method)
		before := free(r.await("is there", func(*topology.NodeResourceTopology) bool { return true }), "cpu")
		o := newOverReserve(t, r.objects)
		for _, name := range []string{"one", "two", "three"} {
			p := o.bind(name, 4)
			assumed := o.shows(p)
			for i := range assumed {
				if assumed[i] != before[i]-4 { // it cannot know where
					t.Fatalf("%s, %s: it assumes %v, before %v", method, name, assumed, before)
				}
			}
			object := r.run(name, 4, gi)
			if object == nil {
				t.Fatal("refused")
			}
			if got := o.shows(p); !slices.Equal(got, free(object, "cpu")) {
				t.Fatalf("%s, %s: it shows %v, the object says %v", method, name, got, free(object, "cpu"))
			}
			before = free(object, "cpu")
		}
		r.stopDaemon()
	}
}
