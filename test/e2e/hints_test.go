package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"
)

// A scheduler's hint comes as an annotation of the pod, through CRI and containerd's NRI. What
// becomes of it is in the placement annotation, in what runc is asked for, in `numafit explain` and
// in `numafit status`. Here small containers go to node 0 when nobody asks for another one, node 1
// is full, and a container of 20 CPUs needs two nodes: it goes to 2 and 3.

const (
	hintNode    = "node-a"
	hintKey     = "numafit.io/numa-hint"
	policyKey   = "numafit.io/topology-policy"
	koordinator = "scheduling.koordinator.sh/resource-status"
	katalyst    = "katalyst.kubewharf.io/numa_bind_result"
	volcano     = "volcano.sh/topology-decision"
	crane       = "topology.crane.io/topology-result"
	godel       = "godel.bytedance.com/micro-topology"
)

type notes = map[string]string

// ours are fields of our own hint, beside the usual ones or instead of them.
type ours map[string]any

// each is for every container, by its name, the NUMA nodes of its hint.
func each(nodes map[string]string) ours {
	all := ours{}
	for name, list := range nodes {
		all[name] = ours{"numa": list}
	}
	return ours{"containers": all}
}

func (o ours) and(key string, value any) ours {
	o[key] = value
	return o
}

func all(nodes string) ours { return each(map[string]string{"*": nodes}) }

func now(beside time.Duration) int64 { return time.Now().Add(beside).UnixMilli() }

// verdict is what is to become of one container of such a pod, which is created alone.
type verdict struct {
	container string
	cpus      int64
	nodes     string // "": it is to be refused
	hint      string // "": there is none for it
}

type hinted struct {
	what   string
	hint   ours // nil: no such annotation
	others notes
	policy string // that holds; "": the node's
	want   []verdict
}

// hintedNode are the settings of a node where hints can be checked against something.
func hintedNode(settings ...string) options {
	return onEight(append(settings, "nodeName="+hintNode, "topologyManagerPolicy=restricted",
		"topologyManagerPolicyOptions.prefer-closest-numa-nodes=true")...)
}

func (n *node) restartDaemon(o options) {
	n.Helper()
	n.killDaemon()
	n.settings = o.settings
	n.startDaemon()
}

func (n *node) hintText(pod string, hint ours) string {
	n.Helper()
	whole := ours{"v": 1, "node": hintNode, "uid": "uid-" + pod, "at": now(0), "ttl": 120}
	maps.Copy(whole, hint)
	text, err := json.Marshal(whole)
	n.must(err)
	return string(text)
}

// judge runs these pods one after the other, and insists that nothing else changes.
func (n *node) judge(pods ...hinted) {
	n.Helper()
	before := n.check()
	for i, h := range pods {
		n.judgePod(fmt.Sprint("hinted-", i), h)
	}
	after := n.check()
	if was, is := picture(exclusive(before)), picture(exclusive(after)); was != is {
		n.Errorf("others had\n%s\nand have\n%s", was, is)
	}
	n.checkCounted(before, after, pods)
	n.run(os.Getenv("NUMAFIT"), "replay", n.path("run/journal")) // with the same hints the same again
}

func (n *node) judgePod(name string, h hinted) {
	n.Helper()
	annotations := maps.Clone(h.others)
	if h.hint != nil {
		annotations = notes{hintKey: n.hintText(name, h.hint)}
		maps.Copy(annotations, h.others)
	}
	p, err := n.tryAnnotatedPod(name, guaranteed, annotations)
	n.must(err)
	for i, v := range h.want {
		w := want{name: v.container, milli: v.cpus * 1000, memory: v.cpus * 5 << 30} // it needs as many nodes for either
		id, err := n.tryContainer(p, w)
		n.check()
		switch {
		case v.nodes == "":
			n.checkRefused(h, v, err)
		case err != nil:
			n.Errorf("%s, %s: %v", h.what, v.container, err)
		default:
			n.checkHinted(h, v, id)
		}
		if told := n.explain(name + "/" + v.container); strings.Contains(told, v.hint+", mode ") != (v.hint != "") {
			n.Errorf("%s, %s: to become %q, numafit explain says: %s", h.what, v.container, v.hint, told)
		}
		if err == nil && i+1 < len(h.want) {
			n.removeContainer(p, v.container)
		}
	}
	n.removePod(p)
}

func (h hinted) inForce() string {
	if h.policy != "" {
		return h.policy
	}
	return "restricted"
}

func (n *node) checkRefused(h hinted, v verdict, err error) {
	n.Helper()
	for _, words := range []string{"(TopologyAffinityError", "policy " + h.inForce(), v.hint} {
		if err == nil || !strings.Contains(err.Error(), words) {
			n.Errorf("%s, %s: to be refused with %q: %v", h.what, v.container, words, err)
		}
	}
}

func (n *node) checkHinted(h hinted, v verdict, id string) {
	n.Helper()
	n.checkCreated(id)
	created := n.askedFor(id)[0]
	var placement struct{ Policy, Nodes, Hint string }
	n.must(json.Unmarshal([]byte(created.Placement), &placement))
	if placement.Hint != v.hint || placement.Nodes != v.nodes || placement.Policy != h.inForce() {
		n.Errorf("%s, %s: to become %q on nodes %s: %s", h.what, v.container, v.hint, v.nodes, created.Placement)
	}
	nodes, cpus := n.set(v.nodes), n.set(created.CPUs)
	for cpu := range cpus {
		if !nodes[cpu%64/8] {
			n.Errorf("%s, %s: runc is asked for CPU %d, which is not on nodes %s", h.what, v.container, cpu, v.nodes)
		}
	}
	if created.Mems != v.nodes || int64(len(cpus)) != v.cpus {
		n.Errorf("%s, %s: runc is asked for cpus %s mems %s, and not for %d on nodes %s",
			h.what, v.container, created.CPUs, created.Mems, v.cpus, v.nodes)
	}
}

// checkCounted compares the counters with the verdicts, and what people are told of them.
func (n *node) checkCounted(before, after status, pods []hinted) {
	n.Helper()
	nr := map[string]int{}
	for _, h := range pods {
		for _, v := range h.want {
			word, _, _ := strings.Cut(v.hint, ":")
			nr[strings.TrimSuffix(word, "-stale")]++
		}
	}
	was, is := before.Counters, after.Counters
	if is.HintsAccepted-was.HintsAccepted != nr["accepted"] || is.HintsRepaired-was.HintsRepaired != nr["repaired"] ||
		is.HintsRejected-was.HintsRejected != nr["rejected"] {
		n.Errorf("verdicts: %v; counted: %+v, before: %+v", nr, is, was)
	}
	words := fmt.Sprintf("hints: %d accepted, %d repaired, %d rejected", is.HintsAccepted, is.HintsRepaired, is.HintsRejected)
	told := n.run(os.Getenv("NUMAFIT"), "status", "--socket", n.path("run/numafitd.sock"))
	if strings.Contains(told, words) != (is.HintsAccepted+is.HintsRepaired+is.HintsRejected > 0) {
		n.Errorf("%q: numafit status says: %s", words, told)
	}
}

// one is a pod of one container of four CPUs.
func one(nodes, hint string) []verdict { return []verdict{{"main", 4, nodes, hint}} }

var (
	single = notes{policyKey: "single-numa-node"}
	wishes = map[string]string{"good": "5", "wide": "4-5", "full": "1", "much": "5-6", "far": "2,5", "more": "1"}
)

func TestHints(t *testing.T) {
	n := newNode(t, hintedNode("schedulerHint.podPolicy=true"))
	full := n.startPod("full", guaranteed, want{name: "full", milli: 16000, memory: 64 * mi}).containers["full"]
	n.startPod("batch", burstable, batch...)

	// the node lets them choose, and repairs
	n.judge(
		hinted{"each its own", each(wishes), nil, "", []verdict{{"good", 4, "5", "accepted"}, {"wide", 20, "4-5", "accepted"},
			{"full", 4, "0", "repaired"}, {"much", 4, "0", "repaired"}, {"far", 20, "2-3", "repaired"},
			{"more", 20, "2-3", "rejected:not-fit"}, {"other", 4, "0", ""}}},
		hinted{"required", each(wishes).and("mode", "require"), nil, "", []verdict{{"good", 4, "5", "accepted"},
			{"full", 4, "", "rejected:not-fit"}, {"much", 4, "", "rejected:not-narrowest"},
			{"far", 20, "", "rejected:farther"}, {"more", 20, "", "rejected:not-fit"}, {"other", 4, "0", ""}}},
		hinted{"required, for another pod", all("5").and("uid", "uid-of-another").and("mode", "require"), nil, "",
			one("", "rejected:uid")},
		hinted{"for another pod", all("5").and("uid", "uid-of-another"), nil, "", one("0", "rejected:uid")},
		hinted{"for another node", all("5").and("node", "node-b"), nil, "", one("0", "rejected:node")},
		hinted{"of another version", all("5").and("v", 2), nil, "", one("0", "rejected:version")},
		hinted{"from the future", all("5").and("at", now(time.Hour)), nil, "", one("0", "rejected:clock")},
		hinted{"of an hour ago", all("5").and("at", now(-time.Hour)), nil, "", one("0", "rejected:expired")},
		hinted{"a node that is not there", all("8"), nil, "", one("0", "rejected:numa")},
		hinted{"larger than we read", nil, notes{hintKey: n.hintText("x", all("5")) + strings.Repeat(" ", 100<<10)}, "",
			one("0", "rejected:format")})
	n.judge(hinted{"of what is free, and of what was", all("5").and("gen", n.status().Generation), nil, "", []verdict{
		{"first", 4, "5", "accepted"}, {"second", 4, "5", "accepted-stale"}}})

	// others' forms; the first one that is there counts, whether it can be followed or not
	zone := `[{"name":"node5","type":"Node","resources":{"capacity":{"cpu":"4"}}}]`
	n.judge(
		hinted{"Koordinator's", nil, notes{koordinator: `{"numaNodeResources":[{"node":5,"resources":{"cpu":"4"}}]}`}, "",
			one("5", "accepted")},
		hinted{"Koordinator's, of CPUs that are another's", nil,
			notes{koordinator: `{"cpuset":"` + n.held(full).CPUs + `"}`}, "",
			one("0", "rejected:foreign-cpuset")},
		hinted{"Katalyst's, and not Crane's", nil, notes{katalyst: "6", crane: zone}, "", one("6", "accepted")},
		hinted{"Volcano's", nil, notes{volcano: `{"numa":{"5":{"cpu":"4","memory":"64Mi"}}}`}, "", one("5", "accepted")},
		hinted{"Crane's", nil, notes{crane: zone}, "", one("5", "accepted")},
		hinted{"Goedel's", nil, notes{godel: "5:cpu=4,memory=64Mi"}, "", one("5", "accepted")},
		hinted{"ours that is none, and not Katalyst's", nil, notes{hintKey: "{", katalyst: "6"}, "",
			one("0", "rejected:format")})

	// a pod's own policy
	n.judge(
		hinted{"stricter", each(map[string]string{"small": "5-6"}), single, "single-numa-node", []verdict{
			{"small", 4, "0", "repaired"}, {"wide", 20, "", ""}}},
		hinted{"Volcano's", nil, notes{"volcano.sh/numa-topology-policy": "single-numa-node"}, "single-numa-node",
			[]verdict{{"wide", 20, "", ""}}},
		hinted{"looser", nil, notes{policyKey: "none"}, "", []verdict{{"wide", 20, "2-3", ""}}})

	// nothing is repaired
	n.restartDaemon(hintedNode("schedulerHint.podPolicy=true", "schedulerHint.repair=false"))
	n.judge(
		hinted{"each its own", each(wishes), nil, "", []verdict{{"good", 4, "5", "accepted"}, {"full", 4, "0", "rejected:not-fit"},
			{"much", 4, "0", "rejected:not-narrowest"}, {"far", 20, "2-3", "rejected:farther"}}},
		hinted{"two, with a policy of one", all("5-6"), single, "single-numa-node", one("0", "rejected:policy")})

	// the node insists, and leaves pods no policy of their own
	n.restartDaemon(hintedNode("schedulerHint.mode=require"))
	n.judge(
		hinted{"asking for less", each(wishes).and("mode", "prefer"), single, "", []verdict{
			{"good", 4, "5", "accepted"}, {"wide", 20, "4-5", "accepted"}, {"full", 4, "", "rejected:not-fit"}}},
		hinted{"Katalyst's", nil, notes{katalyst: "1"}, "", one("", "rejected:not-fit")},
		hinted{"ours that is none", nil, notes{hintKey: "{"}, "", one("", "rejected:format")})

	// the node does not look at them
	n.restartDaemon(hintedNode("schedulerHint.mode=off"))
	n.judge(hinted{"asking for more", each(wishes).and("mode", "require"), nil, "",
		[]verdict{{"good", 4, "0", ""}, {"full", 4, "0", ""}}})
}
