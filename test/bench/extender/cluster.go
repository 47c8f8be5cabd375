package main

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cluster are the nodes that both are asked about (those of bench.go), and as much of an API server as
// it takes to send them to numafit-extender.
type cluster struct {
	*httptest.Server
	pod                   *v1.Pod
	nodes                 []*v1.Node
	nodeTexts, topologies [][]byte
}

const (
	nodesPath    = "/api/v1/nodes"
	podsPath     = "/api/v1/pods"
	topologyPath = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
	images       = 40 // that a kubelet reports; 50 at most
	podsOfNode   = 110
)

func newCluster() *cluster {
	random := xorshift(benchSeed)
	c := &cluster{pod: benchPod(false)}
	c.pod.ObjectMeta = metav1.ObjectMeta{Name: "asked", Namespace: "default", UID: "b5d56f99-c285-4319-8e9a-5dc067b83f80"}
	c.pod.Status.QOSClass = v1.PodQOSGuaranteed
	for i := range benchNodes {
		node := nodeOf(fmt.Sprint("worker-", i))
		c.nodes = append(c.nodes, node)
		c.nodeTexts = append(c.nodeTexts, text(node))
		t := benchTopology(node.Name, &random)
		// the plugin looks at distances in any case, numafit where the node does
		t.Attributes = append(t.Attributes, topology.AttributeInfo{Name: "topologyManagerOptionPreferClosestNumaNodes", Value: "true"})
		c.topologies = append(c.topologies, text(t))
	}
	c.Server = httptest.NewUnstartedServer(c)
	c.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.StartTLS()
	return c
}

// nodeOf has what kubelets say of themselves.
func nodeOf(name string) *v1.Node {
	all := v1.ResourceList{"pods": *resource.NewQuantity(podsOfNode, resource.DecimalSI)}
	for _, r := range benchResources {
		all[v1.ResourceName(r.name)] = *resource.NewQuantity(r.most*benchZones, resource.DecimalSI)
	}
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "32d88d5b-bdb3-429b-a67e-4c896e404c37",
		Labels: map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"topology.kubernetes.io/region": "region-1", "topology.kubernetes.io/zone": "region-1-a"}}}
	n.Status = v1.NodeStatus{Capacity: all, Allocatable: all}
	for _, kind := range []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure, v1.NodeReady} {
		n.Status.Conditions = append(n.Status.Conditions, v1.NodeCondition{Type: kind, Status: v1.ConditionTrue,
			Reason: "KubeletIsSo", Message: "the kubelet says that it is so"})
	}
	for i := range images {
		n.Status.Images = append(n.Status.Images, v1.ContainerImage{SizeBytes: int64(i) << 20,
			Names: []string{fmt.Sprintf("registry.example.com/team/service-%d@sha256:%064x", i, i)}})
	}
	return n
}

func (c *cluster) kubeconfig() string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
	path := filepath.Join(*dir, "kubeconfig")
	check(os.WriteFile(path, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}],
		"users": [{"name": "u", "user": {"token": "t"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`,
		c.URL, base64.StdEncoding.EncodeToString(ca)), 0o600))
	return path
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	lists := map[string][][]byte{nodesPath: c.nodeTexts, podsPath: {}, topologyPath: c.topologies}
	list, ok := lists[r.URL.Path]
	w.Header().Set("Content-Type", "application/json")
	switch query := r.URL.Query(); {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	case query.Has("watch"): // on which nothing comes
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		from, _ := strconv.Atoi(query.Get("continue"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		writePage(w, list, from, limit)
	}
}

// writePage is what the list has from there on, limit objects at most, unless that is 0.
func writePage(w io.Writer, list [][]byte, from, limit int) {
	to, more := len(list), ""
	if limit > 0 && from+limit < to {
		to = from + limit
		more = strconv.Itoa(to)
	}
	fmt.Fprintf(w, `{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1", "continue": %q}, "items": [`, more)
	w.Write(bytes.Join(list[from:to], []byte(",")))
	io.WriteString(w, "]}")
}
