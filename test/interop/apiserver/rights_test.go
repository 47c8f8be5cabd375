package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// What deploy/ allows: what numafitd does, and nothing else.

// asAccount asks as numafitd would, with the token in that file.
func asAccount(t *testing.T, token, method, path, body string) (status int, text string) {
	t.Helper()
	config := rest.CopyConfig(theControlPlane.admin)
	config.CertData, config.KeyData, config.BearerTokenFile = nil, nil, token
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(method, config.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	kind := "application/json"
	switch {
	case method == http.MethodPatch && strings.Contains(path, "fieldManager="):
		kind = "application/apply-patch+yaml"
	case method == http.MethodPatch:
		kind = "application/merge-patch+json"
	}
	request.Header.Set("Content-Type", kind)
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}

func TestWhatIsNotGrantedIsForbidden(t *testing.T) {
	r := prepareRig(t)
	nrt := "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
	pods := "/api/v1/namespaces/default/pods"
	for _, c := range []struct{ method, path string }{
		{"GET", "/api/v1/secrets"},
		{"GET", "/api/v1/configmaps"},
		{"GET", "/api/v1/namespaces/kube-system/secrets"},
		{"GET", "/api/v1/namespaces/" + account.namespace + "/configmaps/numafitd"},
		{"GET", "/api/v1/nodes"},
		{"GET", "/api/v1/nodes?watch=1"},
		{"PUT", "/api/v1/nodes/" + r.name},
		{"PATCH", "/api/v1/nodes/" + r.name},
		{"PATCH", "/api/v1/nodes/" + r.name + "/status"},
		{"DELETE", "/api/v1/nodes/" + r.name},
		{"GET", "/api/v1/nodes/" + r.name + "/proxy/pods"},
		{"GET", pods + "/p"},
		{"POST", pods},
		{"PUT", pods + "/p"},
		{"PATCH", pods + "/p/status"},
		{"DELETE", pods + "/p"},
		{"DELETE", pods},
		{"POST", pods + "/p/exec"},
		{"POST", pods + "/p/binding"},
		{"GET", pods + "/p/log"},
		{"GET", "/api/v1/events"},
		{"DELETE", "/api/v1/namespaces/default/events/e"},
		{"GET", "/api/v1/namespaces"},
		{"GET", "/apis/apps/v1/daemonsets"},
		{"GET", "/apis/policy/v1/poddisruptionbudgets"},
		{"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"},
		{"PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/numafitd"},
		{"GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"},
		{"DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/noderesourcetopologies." + topologyGroup},
		{"GET", "/apis/coordination.k8s.io/v1/leases"},
		{"POST", "/api/v1/namespaces/" + account.namespace + "/serviceaccounts/" + account.name + "/token"},
		{"GET", nrt},
		{"GET", nrt + "?watch=1"},
		{"PUT", nrt + "/" + r.name},
		{"DELETE", nrt + "/" + r.name},
		{"DELETE", nrt},
		{"GET", "/metrics"},
	} {
		if status, text := asAccount(t, r.token, c.method, c.path, "{}"); status != http.StatusForbidden {
			t.Errorf("%s %s: %d, %s", c.method, c.path, status, text)
		}
	}
}

// Everybody who has a token may ask for these, by Kubernetes' own roles; the last three every service
// account, since 1.37 (system:cluster-trust-bundle-discovery).
var everybodys = []string{"create selfsubjectaccessreviews.authorization.k8s.io",
	"create selfsubjectrulesreviews.authorization.k8s.io", "create selfsubjectreviews.authentication.k8s.io",
	"get clustertrustbundles.certificates.k8s.io", "list clustertrustbundles.certificates.k8s.io",
	"watch clustertrustbundles.certificates.k8s.io"}

func TestTheAccountMayDoWhatDeploySaysAndNothingElse(t *testing.T) {
	r := prepareRig(t)
	review := &authorization.SelfSubjectRulesReview{Spec: authorization.SelfSubjectRulesReviewSpec{Namespace: "default"}}
	_, text := asAccount(t, r.token, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", asJSON(review))
	if err := json.Unmarshal([]byte(text), review); err != nil {
		t.Fatal(err, text)
	}
	var may []string
	for _, rule := range review.Status.ResourceRules {
		for _, g := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					what := verb + " " + strings.TrimSuffix(resource+"."+g, ".")
					if !slices.Contains(everybodys, what) {
						may = append(may, what)
					}
				}
			}
		}
	}
	slices.Sort(may)
	if may = slices.Compact(may); !slices.Equal(may, grants(granted)) {
		t.Errorf("the account may %q; deploy/ grants %q", may, grants(granted))
	}
}

// audited is what numafitd has done according to the API server, "verb resource.group". To write an
// object by server-side apply that is not there takes the right to create it, too.
func audited(t *testing.T) (list []string) {
	t.Helper()
	in, err := os.Open(filepath.Join(theControlPlane.home, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	user := fmt.Sprintf("system:serviceaccount:%s:%s", account.namespace, account.name)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb           string
			UserAgent      string
			User           struct{ Username string }
			ObjectRef      struct{ Resource, Subresource, APIGroup string }
			ResponseStatus struct{ Code int }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.User.Username != user || !strings.HasPrefix(e.UserAgent, "numafitd/") ||
			e.ResponseStatus.Code == http.StatusForbidden {
			continue
		}
		what := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		what = strings.TrimSuffix(what+"."+e.ObjectRef.APIGroup, ".")
		list = append(list, e.Verb+" "+what)
		if e.Verb == "patch" && e.ResponseStatus.Code == http.StatusCreated {
			list = append(list, "create "+what)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// The requests of a run in which everything that needs the API server is used are what deploy/ grants:
// a right that nobody uses is one too many.
func TestEveryRightIsUsed(t *testing.T) {
	r := newRig(t, "podsWatch.enabled=true", "events.enabled=true", "refusalAction=evict", "numatopology.enabled=true",
		"podResources.enabled=true", "observedPlacement=kai")
	r.waitLog(1, "pods-watch-synced")
	r.agrees()
	p := r.pod("large", ownedBy("ReplicaSet"), ask{"web", false, perNode + 1})
	time.Sleep(admitted)
	for range 3 {
		if !r.refuses(p) {
			t.Fatal("it is not refused")
		}
	}
	r.eventually("the pod is evicted", func() bool { return r.isLeaving(p) })
	r.waitEvent(p, v1.EventTypeWarning, "TopologyAffinityError")
	own := r.pod("own", nil, ask{"web", false, 2})
	time.Sleep(admitted)
	if err := r.createOf(own, "web"); err != nil {
		t.Fatal(err)
	}
	used, want := []string{}, grants(granted)
	for end := time.Now().Add(patience); !slices.Equal(used, want) && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		used = audited(t) // what is written there comes a little later
	}
	if !slices.Equal(used, want) {
		t.Errorf("used is %q, and granted %q", used, want)
	}
}
