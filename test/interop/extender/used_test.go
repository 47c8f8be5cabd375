package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tried is what the extender's account has asked for according to the API server, "verb resource.group".
func tried(t *testing.T) (list []string) {
	t.Helper()
	in, err := os.Open(filepath.Join(theControlPlane.home, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	user := fmt.Sprintf("system:serviceaccount:%s:%s", extenderAccount.namespace, extenderAccount.name)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Subresource, APIGroup string }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.User.Username != user {
			continue
		}
		what := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		list = append(list, e.Verb+" "+strings.TrimSuffix(what+"."+e.ObjectRef.APIGroup, "."))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// A right that nobody uses is one too many. It comes last: what has been done in all tests counts.
func TestTheExtenderUsesItsRightsAndNoOthers(t *testing.T) {
	r := newRig(t)
	r.withExtender(strategy("LeastAllocated"), nil)
	r.machine("one", zonesOf(2, amounts{"cpu": 4, "memory": 8 * gi}), nil)
	r.bound(r.create(guaranteed("pod", 2)))
	// whether a pod is bound is asked after an answer that was lost only, which nothing here brings about for certain
	rare := "get pods"
	used, want := []string{}, slices.DeleteFunc(grants(extenderMay), func(right string) bool { return right == rare })
	for end := time.Now().Add(patience); !slices.Equal(used, want) && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		used = slices.DeleteFunc(tried(t), func(right string) bool { return right == rare }) // what is written there comes a little later
	}
	if !slices.Equal(used, want) {
		t.Errorf("used is %q, and granted %q", used, want)
	}
}
