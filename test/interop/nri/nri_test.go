package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
)

// numafitd as a plugin of the real NRI runtime side, in the version that go.mod names.

const gi = 1 << 30

var nriVersion = os.Getenv("NRI_VERSION")

type placement struct {
	Policy               string
	Exclusive, Preferred *bool
	CPUs, Mems           string
	Nodes                *string
	Hint                 string
}

// placed is what the container's numafit.io/placement annotation says.
func placed(n *node, c *nri.Container) (p placement) {
	n.Helper()
	if err := json.Unmarshal([]byte(c.Annotations["numafit.io/placement"]), &p); err != nil {
		n.Fatalf("placement of %s: %v: %q", c.Id, err, c.Annotations["numafit.io/placement"])
	}
	return p
}

// own are the CPUs that the container has for itself.
func own(n *node, c *nri.Container) set {
	if c.Annotations["numafit.io/placement"] == "" {
		return set{}
	}
	if p := placed(n, c); p.Exclusive == nil || !*p.Exclusive {
		return set{}
	}
	return cpus(n, c)
}

func guaranteed(cpus int64) want { return want{milli: cpus * 1000, memory: gi} }

var shared = want{qos: "burstable", milli: 500}

func TestRegistersWithNameAndIndex(t *testing.T) {
	n := newNode(t, "nri.pluginIndex=07")
	n.stopDaemon()
	n.startDaemon()
	if name := n.waitConnected(); name != "07-numafit" {
		t.Errorf("registered as %q", name)
	}
	text, _ := os.ReadFile(filepath.Join(n.dir, "log"))
	if !strings.Contains(string(text), "interop") || !strings.Contains(string(text), nriVersion) {
		t.Errorf("Configure's runtime and version are not in the log")
	}
}

func TestGuaranteedContainerGetsItsOwnCPUsAndMemory(t *testing.T) {
	n := newNode(t, "reservedSystemCPUs=0-1")
	c := n.mustCreate("db", guaranteed(4))
	s, mems := cpus(n, c), parse(n, c.Linux.Resources.Cpu.Mems)
	if len(s) != 4 || s[0] || s[1] || len(mems) != 1 || !nodesOf(s).equal(mems) {
		t.Errorf("cpus %q, mems %q", c.Linux.Resources.Cpu.Cpus, c.Linux.Resources.Cpu.Mems)
	}
	if len(n.updated) != 0 {
		t.Errorf("updates of %v, and nothing else runs", n.updated)
	}
}

func TestPlacementAnnotationTellsTheDecision(t *testing.T) {
	n := newNode(t, "topologyManagerPolicy=restricted")
	c := n.mustCreate("db", guaranteed(4))
	p := placed(n, c)
	if p.Policy != "restricted" || p.Exclusive == nil || !*p.Exclusive || p.Preferred == nil || !*p.Preferred ||
		p.Nodes == nil || !parse(n, *p.Nodes).equal(nodesOf(cpus(n, c))) ||
		!parse(n, p.CPUs).equal(cpus(n, c)) || p.Mems != c.Linux.Resources.Cpu.Mems {
		t.Errorf("placement %s beside cpus %s", c.Annotations["numafit.io/placement"], c.Linux.Resources.Cpu.Cpus)
	}
	if p = placed(n, n.mustCreate("web", shared)); p.Exclusive == nil || *p.Exclusive {
		t.Errorf("a burstable container is placed as %+v", p)
	}
}

func TestBurstableContainerRunsInTheSharedPool(t *testing.T) {
	n := newNode(t)
	db := n.mustCreate("db", guaranteed(8))
	web := n.mustCreate("web", shared)
	batch := n.mustCreate("batch", want{qos: "besteffort"})
	if s := cpus(n, web); len(s) == 0 || !s.disjoint(cpus(n, db)) || !s.equal(cpus(n, batch)) {
		t.Errorf("db %s, web %s, batch %s", db.Linux.Resources.Cpu.Cpus, web.Linux.Resources.Cpu.Cpus,
			batch.Linux.Resources.Cpu.Cpus)
	}
}

func TestHugepagesDecideTheNode(t *testing.T) {
	n := newNode(t, "topologyManagerPolicy=single-numa-node")
	dpdk := want{milli: 2000, memory: gi, huge1Gi: 3 * gi} // a node has four such pages
	taken := set{}
	for i := 0; i < nrNodes; i++ {
		c := n.mustCreate(fmt.Sprint("dpdk", i), dpdk)
		mems := parse(n, c.Linux.Resources.Cpu.Mems)
		if len(mems) != 1 || !mems.equal(nodesOf(cpus(n, c))) || !mems.disjoint(taken) {
			t.Fatalf("container %d: cpus %s, mems %s", i, c.Linux.Resources.Cpu.Cpus, c.Linux.Resources.Cpu.Mems)
		}
		for m := range mems {
			taken[m] = true
		}
	}
	if _, err := n.create("dpdk-more", dpdk); err == nil {
		t.Error("a ninth one is admitted")
	}
}

func TestExclusiveCreateShrinksWhatIsShared(t *testing.T) {
	n := newNode(t)
	web, batch := n.mustCreate("web", shared), n.mustCreate("batch", shared)
	before := cpus(n, web)
	db := n.mustCreate("db", guaranteed(16))
	if len(n.updated) != 2 || len(cpus(n, web)) >= len(before) {
		t.Errorf("updates of %v", n.updated)
	}
	if !cpus(n, web).disjoint(cpus(n, db)) || !cpus(n, batch).disjoint(cpus(n, db)) {
		t.Errorf("db %s, web %s", db.Linux.Resources.Cpu.Cpus, web.Linux.Resources.Cpu.Cpus)
	}
}

func TestForeignCpusetInAnUpdateIsOverridden(t *testing.T) {
	n := newNode(t)
	shares := map[string]uint64{"db": 4 * 1024, "web": 77} // 4 CPUs as before; other ones would resize it
	for _, c := range []*nri.Container{n.mustCreate("db", guaranteed(4)), n.mustCreate("web", shared)} {
		want := shares[c.Name]
		reply, err := n.runtime.UpdateContainer(context.Background(), &nri.UpdateContainerRequest{
			Pod: n.pods[c.PodSandboxId], Container: c,
			LinuxResources: &nri.LinuxResources{Cpu: &nri.LinuxCPU{Cpus: "0-127", Mems: "0-7", Shares: nri.UInt64(want)}}})
		if err != nil {
			t.Fatal(err)
		}
		var got *nri.LinuxCPU
		for _, u := range reply.Update {
			if u.GetContainerId() == c.Id {
				got = u.GetLinux().GetResources().GetCpu()
			}
		}
		is := c.Linux.Resources.Cpu
		if got.GetCpus() != is.Cpus || got.GetMems() != is.Mems || got.GetShares().GetValue() != want {
			t.Errorf("%s has %s of nodes %s; the update becomes %v", c.Id, is.Cpus, is.Mems, got)
		}
	}
}

func TestRefusalSaysWhy(t *testing.T) {
	n := newNode(t, "topologyManagerPolicy=single-numa-node")
	_, err := n.create("wide", guaranteed(perNode+1))
	if err == nil || !strings.Contains(err.Error(), "Topology") {
		t.Fatalf("17 CPUs on one node of 16: %v", err)
	}
	t.Logf("refused: %v", err)
	if c := n.mustCreate("db", guaranteed(perNode)); len(cpus(n, c)) != perNode {
		t.Errorf("after a refusal: %s", c.Linux.Resources.Cpu.Cpus)
	}
}

// A scheduler's hint is on the pod, and the decision is each container's.
func TestHintOnThePodReachesTheDecision(t *testing.T) {
	n := newNode(t, "nodeName=node-a", "topologyManagerPolicy=restricted", "schedulerHint.podPolicy=true")
	ours := func(uid, nodes, mode string) map[string]string {
		return map[string]string{"numafit.io/numa-hint": fmt.Sprintf(`{"v":1,"node":"node-a","uid":"uid-%s","at":%d,`+
			`"ttl":60,"mode":"%s","containers":{"*":{"numa":"%s"}}}`, uid, time.Now().UnixMilli(), mode, nodes)}
	}
	for _, c := range []struct {
		name              string
		notes             map[string]string
		nodes, hint, says string // says: why it is refused
	}{
		{"none", nil, "0", "", ""},
		{"good", ours("good", "5", "prefer"), "5", "accepted", ""},
		{"wide", ours("wide", "6-7", "prefer"), "0", "repaired", ""},
		{"stray", ours("other", "5", "prefer"), "0", "rejected:uid", ""},
		{"must", ours("must", "6-7", "require"), "", "", "rejected:not-narrowest"},
		{"katalyst", map[string]string{"katalyst.kubewharf.io/numa_bind_result": "4"}, "4", "accepted", ""},
		{"large", map[string]string{"numafit.io/numa-hint": strings.Repeat("[", 1<<20)}, "0", "rejected:format", ""},
		{"policy", map[string]string{"numafit.io/topology-policy": "single-numa-node"}, "0", "", ""},
	} {
		w := guaranteed(2)
		w.notes = c.notes
		made, err := n.create(c.name, w)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: to be refused with %q: %v", c.name, c.says, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		n.check()
		p := placed(n, made)
		if p.Hint != c.hint || *p.Nodes != c.nodes || made.Linux.Resources.Cpu.Mems != c.nodes ||
			len(cpus(n, made)) != 2 || !nodesOf(cpus(n, made)).equal(parse(n, c.nodes)) {
			t.Errorf("%s: to become %q on node %s: %s", c.name, c.hint, c.nodes, made.Annotations["numafit.io/placement"])
		}
		if strict := p.Policy == "single-numa-node"; strict != (c.name == "policy") {
			t.Errorf("%s: policy %s", c.name, p.Policy)
		}
	}
}

func TestWishesReachTheRuntime(t *testing.T) {
	n := newNode(t, "podWishes.allowed=memory-policy,rdt-class,blockio-class", "containerEnvironment=true")
	for _, c := range []struct {
		policy, says string // as JSON: NRI before 0.12.0 has no such message
	}{
		{"bind", `{"mode":2,"nodes":"0"}`},
		{"interleave", `{"mode":3,"nodes":"0"}`},
		{"preferred", `{"mode":5,"nodes":"0"}`},
		{"local", `{"mode":4}`},
	} {
		w := guaranteed(2)
		w.notes = map[string]string{"numafit.io/memory-policy": c.policy, "numafit.io/rdt-class": "gold", "blockio-class.numafit.io/main": "slow"}
		made := n.mustCreate(c.policy, w)
		linux := n.adjusted.GetLinux()
		text, err := json.Marshal(linux)
		if err != nil {
			t.Fatal(err)
		}
		if is := strings.Contains(string(text), `"memory_policy":`+c.says); is != memoryPolicy {
			t.Errorf("%s becomes %s", c.policy, text)
		}
		if rdt, blockio := linux.GetResources().GetRdtClass().GetValue(), linux.GetResources().GetBlockioClass().GetValue(); rdt != "gold" || blockio != "slow" {
			t.Errorf("rdt-class %q, blockio-class %q", rdt, blockio)
		}
		env := map[string]string{}
		for _, kv := range n.adjusted.GetEnv() {
			env[kv.Key] = kv.Value
		}
		cpu := made.Linux.Resources.Cpu
		if env["NUMAFIT_CPUS"] != cpu.Cpus || env["NUMAFIT_MEMS"] != cpu.Mems || env["NUMAFIT_NUMA_NODES"] != "0" || len(env) != 3 {
			t.Errorf("cpus %s, mems %s, but its environment says %v", cpu.Cpus, cpu.Mems, env)
		}
	}
	if !memoryPolicy {
		n.waitLog(4, "memory_policy=not-applied")
	}
}

func within(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(slowly(20 * time.Second)); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// A file says what a container has, and goes on saying so.
func TestAContainersFileFollows(t *testing.T) {
	n := newNode(t, "containerEnvironment=true")
	lines := func(c *nri.Container) string {
		text, _ := os.ReadFile(filepath.Join(n.dir, "run", "self", c.Id, "self"))
		return string(text)
	}
	want := func(c *nri.Container) string {
		cpu := c.Linux.Resources.Cpu
		return fmt.Sprintf("NUMAFIT_CPUS=%s\nNUMAFIT_MEMS=%s\nNUMAFIT_NUMA_NODES=", cpu.Cpus, cpu.Mems)
	}
	log := n.mustCreate("log", shared)
	mounts := n.adjusted.GetMounts()
	if len(mounts) != 1 || mounts[0].Destination != "/run/numafit" || mounts[0].Source != filepath.Join(n.dir, "run", "self", log.Id) ||
		mounts[0].Type != "bind" || strings.Join(mounts[0].Options, ",") != "bind,ro,nosuid,nodev,noexec" {
		t.Errorf("mounts: %v", mounts)
	}
	if !strings.HasPrefix(lines(log), want(log)) {
		t.Errorf("its file has %q, and it has %s", lines(log), want(log))
	}
	before := lines(log)
	own := n.mustCreate("own", guaranteed(4)) // the pool moves
	if !strings.HasPrefix(lines(own), want(own)) {
		t.Errorf("its file has %q, and it has %s", lines(own), want(own))
	}
	within(t, "the file to follow the pool", func() bool { return lines(log) != before && strings.HasPrefix(lines(log), want(log)) })
	n.killDaemon()
	n.startDaemon()
	n.waitConnected()
	n.stop(own)
	n.remove(own)
	within(t, "the file to follow back, after a restart", func() bool { return lines(log) == before })
	within(t, "the folder of one that is gone to go", func() bool {
		_, err := os.Stat(filepath.Join(n.dir, "run", "self", own.Id))
		return os.IsNotExist(err)
	})
	if info, err := os.Stat(filepath.Join(n.dir, "run", "self", log.Id, "self")); err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestMemoryOfSeveralNUMANodesIsInterleaved(t *testing.T) {
	n := newNode(t, "memoryPolicyAcrossNodes=interleave", "topologyManagerPolicy=best-effort")
	for _, c := range []struct {
		cpus int64
		says bool
	}{{perNode + 2, true}, {2, false}} {
		made := n.mustCreate(fmt.Sprint(c.cpus), guaranteed(c.cpus))
		text, err := json.Marshal(n.adjusted.GetLinux())
		if err != nil {
			t.Fatal(err)
		}
		want := `"memory_policy":{"mode":3,"nodes":"` + made.Linux.Resources.Cpu.Mems + `"}`
		if is := strings.Contains(string(text), want); is != (memoryPolicy && c.says) {
			t.Errorf("%d CPUs become %s", c.cpus, text)
		}
	}
}

func TestWhatIsLeftToItselfHasNoCpuset(t *testing.T) {
	n := newNode(t, "namespaces=names=* cpus=untouched rdt-class=gold force=true", "podWishes.allowed=rdt-class")
	made := n.mustCreate("vm", guaranteed(2))
	if cpu := made.GetLinux().GetResources().GetCpu(); cpu.GetCpus() != "" || cpu.GetMems() != "" {
		t.Errorf("it has cpus %q, mems %q", cpu.GetCpus(), cpu.GetMems())
	}
	if made.Annotations["numafit.io/placement"] != "" {
		t.Errorf("it says that it was placed: %s", made.Annotations["numafit.io/placement"])
	}
	if rdt := n.adjusted.GetLinux().GetResources().GetRdtClass().GetValue(); rdt != "gold" {
		t.Errorf("rdt-class %q", rdt)
	}
}

func TestNoCPUIsGivenTwiceUntilNoneIsLeft(t *testing.T) {
	n := newNode(t, "reservedSystemCPUs=0-1")
	n.mustCreate("web", shared)
	var err error
	given, asked := 0, nrNodes*perNode
	for i := 0; i < asked; i++ {
		var c *nri.Container
		if c, err = n.create(fmt.Sprint("c", i), guaranteed(int64(1+i%5))); err != nil {
			break
		}
		n.check()
		given += len(cpus(n, c))
	}
	if err == nil || given < asked-2-5 {
		t.Errorf("%d of %d CPUs given, then %v", given, asked-2, err)
	}
}

func TestStopAndRemoveGiveBack(t *testing.T) {
	n := newNode(t, "topologyManagerPolicy=single-numa-node", "reservedSystemCPUs=0-1")
	var held []*nri.Container
	for i := 1; i < nrNodes; i++ { // node 0 has reserved CPUs
		held = append(held, n.mustCreate(fmt.Sprint("c", i), guaranteed(perNode)))
	}
	end := []func(*nri.Container){n.stop, n.remove, func(c *nri.Container) { n.stop(c); n.remove(c) },
		func(c *nri.Container) { // the pod goes and its container was never told of
			delete(n.containers, c.Id)
			p := &nri.RemovePodSandboxRequest{Pod: n.pods[c.PodSandboxId]}
			if err := n.runtime.RemovePodSandbox(context.Background(), p); err != nil {
				t.Fatal(err)
			}
		}}
	for i, leave := range end {
		if _, err := n.create(fmt.Sprint("early", i), guaranteed(perNode)); err == nil {
			t.Fatal("there is room before anything has ended")
		}
		leave(held[i])
		n.mustCreate(fmt.Sprint("late", i), guaranteed(perNode))
	}
}

func TestRestartedContainerKeepsItsCPUs(t *testing.T) {
	n := newNode(t)
	old := n.mustCreate("db", guaranteed(4))
	delete(n.containers, old.Id)
	again := n.mustCreate("db", want{milli: 4000, memory: gi, id: "ctr-db-again"})
	if !cpus(n, again).equal(cpus(n, old)) {
		t.Errorf("%s, now %s", old.Linux.Resources.Cpu.Cpus, again.Linux.Resources.Cpu.Cpus)
	}
	n.stop(old) // told late, and of the old id: the new one's CPUs stay its own
	if other := n.mustCreate("other", guaranteed(4)); !cpus(n, other).disjoint(cpus(n, again)) {
		t.Errorf("%s given to another", other.Linux.Resources.Cpu.Cpus)
	}
}

func TestSynchronizeOfAThousandContainers(t *testing.T) {
	for _, baggage := range []int{0, 6000, 15000} { // a message of 6 MB, of 15 MB
		t.Run(fmt.Sprintf("%d bytes each", baggage), func(t *testing.T) { synchronizeThousand(t, baggage) })
	}
}

// synchronizeThousand restarts the daemon, without its journal, beside 1,000 containers that run:
// 20 that it had placed, the others never seen. Large ones do not fit into one message of newer
// runtimes, which then tell them in several.
func synchronizeThousand(t *testing.T, baggage int) {
	n := newNode(t)
	had := map[string]string{}
	for i := 0; i < 20; i++ {
		c := n.mustCreate(fmt.Sprint("own", i), guaranteed(2))
		had[c.Id] = c.Linux.Resources.Cpu.Cpus
	}
	n.killDaemon()
	os.RemoveAll(filepath.Join(n.dir, "run"))
	for i := 0; len(n.containers) < 1000; i++ {
		w := shared
		w.pod, w.id, w.baggage = fmt.Sprint("pod", i/10), fmt.Sprint("ctr-shared", i), baggage
		p, c := n.container("", w)
		c.Name = fmt.Sprint("part", i%10)
		n.pods[p.Id], n.containers[c.Id] = p, c
	}
	start := time.Now()
	n.startDaemon()
	n.waitConnected()
	t.Logf("%d containers in %v", len(n.containers), time.Since(start).Round(time.Millisecond))
	if baggage > 0 && chunks {
		n.waitLine("retrying in smaller chunks")
	}
	n.check()
	for id, list := range had {
		if now := n.containers[id].Linux.Resources.Cpu.Cpus; now != list {
			t.Errorf("%s ran on %s and is moved to %s", id, list, now)
		}
	}
	n.mustCreate("late", guaranteed(2))
}

func TestKilledDaemonComesBackToWhatRuns(t *testing.T) {
	n := newNode(t)
	db, web := n.mustCreate("db", guaranteed(4)), n.mustCreate("web", shared)
	gone := n.mustCreate("gone", guaranteed(64))
	before := db.Linux.Resources.Cpu.Cpus
	n.killDaemon()
	delete(n.containers, gone.Id) // it ends while nobody listens
	n.startDaemon()
	n.waitConnected()
	if db.Linux.Resources.Cpu.Cpus != before {
		t.Errorf("db ran on %s, now on %s", before, db.Linux.Resources.Cpu.Cpus)
	}
	n.mustCreate("one", guaranteed(8))
	n.mustCreate("two", guaranteed(96)) // fits only where "gone" was
	if !cpus(n, web).disjoint(cpus(n, db)) {
		t.Errorf("web %s, db %s", web.Linux.Resources.Cpu.Cpus, db.Linux.Resources.Cpu.Cpus)
	}
}

func TestDaemonOutlivesTheRuntime(t *testing.T) {
	n := makeNode(t)
	real := n.socket
	n.socket = filepath.Join(n.dir, "relay.sock")
	cut := n.relay(n.socket, real)
	n.startRuntime()
	n.startDaemon()
	n.waitConnected()
	db, web := n.mustCreate("db", guaranteed(4)), n.mustCreate("web", shared)
	cut()
	n.runtime.Stop()
	n.startRuntime()
	defer n.relay(n.socket, real)()
	start := time.Now()
	n.waitConnected()
	t.Logf("connected again after %v", time.Since(start).Round(time.Millisecond))
	one, two := n.mustCreate("one", guaranteed(8)), n.mustCreate("two", guaranteed(8))
	if !cpus(n, one).disjoint(cpus(n, two)) || !cpus(n, one).disjoint(cpus(n, db)) || len(cpus(n, web)) == 0 {
		t.Errorf("db %s, one %s, two %s", db.Linux.Resources.Cpu.Cpus, one.Linux.Resources.Cpu.Cpus,
			two.Linux.Resources.Cpu.Cpus)
	}
}
