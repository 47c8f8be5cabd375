package interop

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// objects is as much of an API server as it takes to hand on what numafitd writes: the scheduler's
// plugin reads the very bytes.

const (
	group      = "/apis/topology.node.k8s.io/v1alpha2"
	collection = group + "/noderesourcetopologies"
	groups     = `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "topology.node.k8s.io",
		"versions": [{"groupVersion": "topology.node.k8s.io/v1alpha2", "version": "v1alpha2"}],
		"preferredVersion": {"groupVersion": "topology.node.k8s.io/v1alpha2", "version": "v1alpha2"}}]}`
	kinds = `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "topology.node.k8s.io/v1alpha2",
		"resources": [{"name": "noderesourcetopologies", "singularName": "noderesourcetopology", "namespaced": false,
		"kind": "NodeResourceTopology", "verbs": ["get", "list", "watch"]}]}`
	noCore = `{"kind": "APIVersions", "versions": []}`
)

type objects struct {
	*httptest.Server
	lock    sync.Mutex
	changed *sync.Cond
	texts   map[string][]byte // by name
}

func newObjects(t *testing.T) *objects {
	o := &objects{texts: map[string][]byte{}}
	o.changed = sync.NewCond(&o.lock)
	o.Server = httptest.NewUnstartedServer(o)
	o.Config.ErrorLog = quiet
	o.StartTLS()
	t.Cleanup(func() { o.CloseClientConnections(); o.Close() })
	return o
}

func (o *objects) config() *rest.Config {
	return &rest.Config{Host: o.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: o.ca()}}
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fixed := map[string]string{"/api": noCore, "/apis": groups, group: kinds}
	dir, name := path.Split(r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Has("watch"): // on which nothing comes
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case fixed[r.URL.Path] != "":
		io.WriteString(w, fixed[r.URL.Path])
	case r.URL.Path == collection:
		w.Write(o.list())
	case dir == collection+"/" && r.Method == http.MethodPatch:
		o.write(w, r, name)
	case dir == collection+"/" && o.text(name) != nil:
		w.Write(o.text(name))
	case dir == "/api/v1/nodes/":
		w.Write(asJSON(v1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-the-node"}}))
	default:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	}
}

func (o *objects) write(w http.ResponseWriter, r *http.Request, name string) {
	text, err := io.ReadAll(r.Body)
	if err != nil || !json.Valid(text) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	o.lock.Lock()
	created := o.texts[name] == nil
	o.texts[name] = text
	o.changed.Broadcast()
	o.lock.Unlock()
	if created {
		w.WriteHeader(http.StatusCreated)
	}
	w.Write(text)
}

func (o *objects) text(name string) []byte {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.texts[name]
}

func (o *objects) list() []byte {
	o.lock.Lock()
	defer o.lock.Unlock()
	var texts []string
	for _, text := range o.texts {
		texts = append(texts, string(text))
	}
	return []byte(`{"kind": "NodeResourceTopologyList", "apiVersion": "topology.node.k8s.io/v1alpha2",
		"metadata": {"resourceVersion": "1"}, "items": [` + strings.Join(texts, ",") + "]}")
}

func asJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

func parseTopology(t testing.TB, text []byte) *topology.NodeResourceTopology {
	t.Helper()
	object := &topology.NodeResourceTopology{}
	if err := json.Unmarshal(text, object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return object
}
