package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"numafit/test/interop/scheduler/upstream"
)

// handle is what a plugin needs of the scheduler: the way to the API server, and the informers.
type handle struct {
	framework.Handle
	server *server
}

var nobodyAsks = informers.NewSharedInformerFactory(nil, 0)

func newHandle(q *upstream.Question) framework.Handle {
	s := &server{topologies: map[string][]byte{}}
	for _, c := range q.Nodes {
		if text := c.Topology; len(text) > 0 && string(text) != "null" {
			if q.Whole {
				text = wholeTopology(text)
			}
			s.topologies[upstream.Must[v1.Node](c.Node).Name] = text
		}
	}
	return handle{server: s}
}

func (h handle) SharedInformerFactory() informers.SharedInformerFactory { return nobodyAsks }

func (h handle) KubeConfig() *rest.Config {
	return &rest.Config{Host: "http://api", Transport: h.server, QPS: -1}
}

// server is the API server as the plugin's client sees it, without a network: it has
// NodeResourceTopology objects, and nothing happens to them.
type server struct{ topologies map[string][]byte }

const (
	group       = "/apis/topology.node.k8s.io/v1alpha2"
	collection  = group + "/noderesourcetopologies"
	groupList   = `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"topology.node.k8s.io","versions":[{"groupVersion":"topology.node.k8s.io/v1alpha2","version":"v1alpha2"}],"preferredVersion":{"groupVersion":"topology.node.k8s.io/v1alpha2","version":"v1alpha2"}}]}`
	resources   = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"topology.node.k8s.io/v1alpha2","resources":[{"name":"noderesourcetopologies","singularName":"noderesourcetopology","namespaced":false,"kind":"NodeResourceTopology","verbs":["get","list","watch"]}]}`
	noCoreGroup = `{"kind":"APIVersions","versions":[]}`
	listHead    = `{"kind":"NodeResourceTopologyList","apiVersion":"topology.node.k8s.io/v1alpha2","metadata":{"resourceVersion":"1"},"items":[`
	notFound    = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
)

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("watch") {
		return reply(http.StatusOK, endless{r}), nil
	}
	fixed := map[string]string{"/api": noCoreGroup, "/apis": groupList, group: resources}
	if text, ok := fixed[r.URL.Path]; ok {
		return replyText(http.StatusOK, []byte(text)), nil
	}
	if r.URL.Path == collection {
		return replyText(http.StatusOK, s.list()), nil
	}
	if dir, name := path.Split(r.URL.Path); strings.TrimSuffix(dir, "/") == collection {
		if topology, ok := s.topologies[name]; ok {
			return replyText(http.StatusOK, topology), nil
		}
	}
	return replyText(http.StatusNotFound, []byte(notFound)), nil
}

func (s *server) list() []byte {
	var items [][]byte
	for _, topology := range s.topologies {
		items = append(items, topology)
	}
	return append(append([]byte(listHead), bytes.Join(items, []byte(","))...), "]}"...)
}

func reply(status int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: status, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}}}
}

func replyText(status int, text []byte) *http.Response {
	return reply(status, io.NopCloser(bytes.NewReader(text)))
}

// endless is a watch on which nothing comes.
type endless struct{ r *http.Request }

func (e endless) Read([]byte) (int, error) { <-e.r.Context().Done(); return 0, io.EOF }
func (endless) Close() error               { return nil }

// makeWhole turns what Kubernetes keeps as a decimal fraction, and what is a copy in name only, into
// the same amount as a number.
func makeWhole(pod *v1.Pod) {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			wholeList(list[i].Resources.Requests)
		}
	}
	wholeList(pod.Spec.Overhead)
}

func wholeList(list v1.ResourceList) {
	for name, q := range list {
		list[name] = whole(q)
	}
}

// whole is without a binary suffix, which would make a decimal of a large number again.
func whole(q resource.Quantity) resource.Quantity {
	number := resource.NewQuantity(q.Value(), resource.DecimalSI)
	if again := *number; again.Cmp(q) == 0 { // a copy: comparing may make it a decimal, too
		return *number
	}
	return *resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI)
}

func wholeTopology(text []byte) []byte {
	object := upstream.Must[topology.NodeResourceTopology](text)
	for _, zone := range object.Zones {
		for i := range zone.Resources {
			zone.Resources[i].Available = whole(zone.Resources[i].Available)
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return text
}
