package interop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// How soon others see what was decided: from the answer to a create until a watch of the topology
// shows it. Figures, and no judgement: the machine is anything.

func TestHowSoonACreateIsSeen(t *testing.T) {
	for _, c := range []struct {
		creates  int
		interval time.Duration
	}{
		{1000, 20 * time.Millisecond},
		{25, 200 * time.Millisecond},
	} {
		t.Run(c.interval.String(), func(t *testing.T) {
			r := prepareRig(t, fmt.Sprint("nodeResourceTopology.interval=", c.interval), "nodeResourceTopology.heartbeat=60s")
			r.direct()
			r.startRuntime()
			r.startDaemon()
			r.waitConnected()
			r.agrees()
			took := r.timeCreates(c.creates, c.interval)
			slices.Sort(took)
			at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100].Round(100 * time.Microsecond) }
			fmt.Printf("figure: create to visible, at most one write in %v: p50 %v, p99 %v, at most %v, of %d\n",
				c.interval, at(50), at(99), at(100), len(took))
		})
	}
}

// timeCreates creates so many containers of 8 CPUs, each when the write before has been seen and the
// interval after it is over.
func (r *rig) timeCreates(nr int, interval time.Duration) (took []time.Duration) {
	const each, most = 8, 12 // CPUs, and containers at a time
	w, err := r.topologies().Watch(background, metav1.ListOptions{FieldSelector: "metadata.name=" + r.name})
	if err != nil {
		r.Fatal(err)
	}
	defer w.Stop()
	all := sum(available(r.topology(), "cpu"))
	seen := func(cpus int64) {
		for timeout := time.After(patience); ; {
			select {
			case e := <-w.ResultChan():
				if o, ok := e.Object.(*unstructured.Unstructured); ok {
					if object, err := typed(o); err == nil && sum(available(object, "cpu")) == cpus {
						return
					}
				}
			case <-timeout:
				r.Fatalf("%d CPUs were not seen to be free", cpus)
			}
		}
	}
	for len(took) < nr {
		var running []*nri.Container
		for len(running) < most && len(took) < nr {
			time.Sleep(interval)
			running = append(running, r.mustAsk(fmt.Sprint("p", len(took)), guaranteed(each)))
			start := time.Now()
			seen(all - int64(len(running))*each)
			took = append(took, time.Since(start))
		}
		for _, c := range running {
			r.away(c)
		}
		seen(all)
	}
	return took
}
