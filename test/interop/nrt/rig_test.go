package interop

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"testing"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
)

// numafitd between a runtime (the file of that name of the NRI rig) and objects, on any machine.

const (
	nriVersion = "v0.6.1"
	nodeName   = "node-a"
	gi         = int64(1) << 30
)

var quiet = log.New(io.Discard, "", 0)

type rig struct {
	*node
	objects *objects
	running []*nri.Container
}

func newRig(t *testing.T, machine string, settings ...string) *rig {
	r := &rig{node: makeNode(t), objects: newObjects(t)}
	config := filepath.Join(r.dir, "kubeconfig")
	if err := os.WriteFile(config, []byte(r.objects.kubeconfig()), 0o600); err != nil {
		t.Fatal(err)
	}
	r.settings = append([]string{"machine=" + filepath.Join(os.Getenv("MACHINES"), machine), "nodeName=" + nodeName,
		"apiServer.kubeconfig=" + config, "nodeResourceTopology.enabled=true", "nodeResourceTopology.interval=20ms",
		"topologyManagerPolicy=single-numa-node", "metrics.address="}, settings...)
	r.startRuntime()
	r.startDaemon()
	r.waitConnected()
	return r
}

func (o *objects) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.Certificate().Raw})
}

func (o *objects) kubeconfig() string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}],
		"users": [{"name": "u", "user": {"token": "t"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`,
		o.URL, base64.StdEncoding.EncodeToString(o.ca()))
}

// await waits until the object that numafitd has written is as wanted.
func (r *rig) await(what string, wanted func(t *topology.NodeResourceTopology) bool) *topology.NodeResourceTopology {
	r.Helper()
	o := r.objects
	late := time.AfterFunc(patience, func() { o.lock.Lock(); o.changed.Broadcast(); o.lock.Unlock() })
	defer late.Stop()
	o.lock.Lock()
	defer o.lock.Unlock()
	for start := time.Now(); time.Since(start) < patience; o.changed.Wait() {
		if text := o.texts[nodeName]; text != nil {
			if object := parseTopology(r, text); wanted(object) {
				return object
			}
		}
	}
	r.Fatalf("no topology that %s; the last one is %s", what, o.texts[nodeName])
	return nil
}

// free is how much of the resource each zone has left.
func free(t *topology.NodeResourceTopology, resource string) (list []int64) {
	for _, z := range t.Zones {
		for _, of := range z.Resources {
			if of.Name == resource {
				list = append(list, of.Available.Value())
			}
		}
	}
	return list
}

func sum(list []int64) (n int64) {
	for _, i := range list {
		n += i
	}
	return n
}

// run creates a container of its own pod, of so many CPUs and so much memory, and returns the object
// that accounts for it; nil: it is refused.
func (r *rig) run(name string, cpus, memory int64) *topology.NodeResourceTopology {
	r.Helper()
	before := sum(free(r.await("is there", func(*topology.NodeResourceTopology) bool { return true }), "cpu"))
	c, err := r.create(name, want{milli: cpus * 1000, memory: memory})
	if err != nil {
		return nil
	}
	r.running = append(r.running, c)
	return r.await("accounts for "+name, func(t *topology.NodeResourceTopology) bool {
		return sum(free(t, "cpu")) <= before-cpus
	})
}

// own are the CPUs that the container has for itself.
func own(n *node, c *nri.Container) set {
	n.Helper()
	var p struct{ Exclusive bool }
	if text := c.Annotations["numafit.io/placement"]; text != "" {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			n.Fatalf("placement of %s: %v: %q", c.Id, err, text)
		}
	}
	if !p.Exclusive {
		return set{}
	}
	return cpus(n, c)
}
