package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// From the kubelet's Allocate to the container that comes for its tokens: the annotation that
// numafitd answers with goes through the device manager's GetDeviceRunContainerOptions into the
// container of the runtime.

const gi = 1 << 30

var (
	visible = slowly(100 * time.Millisecond) // at most from a container's creation to the kubelet
	// From a pod's rejection to the end of its lease: no answer of a minute's shows it.
	kept, reclaimed = 50 * time.Second, 150 * time.Second
)

func TestPinnedCPUsLieOnTheNodesOfTheAllocatedTokens(t *testing.T) {
	for _, policy := range []string{"none", "best-effort", "restricted", "single-numa-node"} {
		t.Run(policy, func(t *testing.T) {
			r := newRig(t, policy)
			for i, asked := range []int64{4, 16, 1, 24, 7, 15, 3} {
				p := tokenPod(fmt.Sprint("ask", i), asked)
				if err := r.kubelet.admit(p); err != nil {
					if asked <= perNode {
						t.Errorf("%d tokens: %v", asked, err)
					}
					continue
				}
				r.followsTokens(p, r.mustCreate(p, "main"))
			}

			for _, p := range r.kubelet.GetActivePods() {
				for id := range r.kubelet.held(p, "main", cpuResource) {
					if _, ok := healthyDevices(r.kubelet.devices)[cpuResource][id]; !ok {
						t.Errorf("token %s of pod %s is not healthy", id, p.Name)
					}
				}
			}
		})
	}
}

func TestCPUsThatGoByNRIAloneTurnAsManyFreeTokensUnhealthy(t *testing.T) {
	r := newRig(t, "restricted")
	p := tokenPod("db", 10) // of node 0, which has 6 more
	r.followsTokens(p, r.mustRun(p))
	var took []time.Duration
	for i, cpus := range []int64{1, 5, 16, 15, 7} {
		before := r.kubelet.healthyOn(cpuResource)
		alone := newPod(fmt.Sprint("alone", i), ask{name: "main", cpus: cpus})
		if err := r.runSandbox(alone); err != nil { // no word of it from the kubelet
			t.Fatal(err)
		}
		start := time.Now()
		c, err := r.createWith(alone, "main", "ctr-alone", nil)
		if err != nil {
			t.Fatal(err)
		}
		want := before
		for node, nr := range r.cpusOn(c) {
			want[node] -= nr
		}
		took = append(took, r.sees(start, want))
		start = time.Now()
		r.end(alone)
		took = append(took, r.sees(start, before))
	}
	slices.Sort(took) // a machine that is busy elsewhere may hold one of them up
	if median := took[len(took)/2]; median > visible {
		t.Errorf("changes are seen after %v, as the median", median)
	}
	if healthy := healthyDevices(r.kubelet.devices)[cpuResource]; len(healthy) != r.tokens() {
		t.Errorf("%d tokens are healthy in the end", len(healthy))
	}
}

// sees waits until the device manager has so many healthy tokens on each node: how long since start.
func (r *rig) sees(start time.Time, want [nrNodes]int) time.Duration {
	r.Helper()
	r.kubelet.await("healthy tokens", func() any { return r.kubelet.healthyOn(cpuResource) }, want)
	took := time.Since(start)
	r.Logf("%v seen after %v", want, took.Round(time.Microsecond))
	return took
}

func TestTokensAndNRIAloneShareANodeToItsLastCPU(t *testing.T) {
	r := newRig(t, "single-numa-node", "topologyManagerPolicy=single-numa-node")
	r.mustRun(tokenPod("first", 10)) // node 0 has 6 left
	want := everyToken
	for node := 1; node < nrNodes; node++ {
		start := time.Now()
		r.mustRun(newPod(fmt.Sprint("alone", node), ask{name: "main", cpus: 9})) // one fits into a node
		want[node] -= 9
		r.kubelet.await("healthy tokens", func() any { return r.kubelet.healthyOn(cpuResource) }, want)
		t.Logf("%v, %v after admission", want, time.Since(start).Round(time.Millisecond))
	}
	for _, one := range []struct {
		tokens int64
		node   int
	}{{7, 1}, {6, 0}, {7, 2}} {
		p := tokenPod(fmt.Sprint("on", one.node), one.tokens)
		c := r.mustRun(p)
		r.followsTokens(p, c)
		if on := r.onlyNode(r.cpusOn(c)); on != one.node {
			t.Errorf("%d CPUs on node %d", one.tokens, on)
		}
	}
	if err := r.kubelet.admit(tokenPod("more", 8)); err == nil || !strings.HasPrefix(err.Error(), topologyError) {
		t.Errorf("8 tokens where no node has so many left: %v", err)
	}
}

func TestAllocatedTokensAreKeptFromContainersThatComeByNRIAlone(t *testing.T) {
	r := newRig(t, "single-numa-node", "topologyManagerPolicy=single-numa-node")
	late := tokenPod("late", 16)
	r.mustAdmit(late) // its tokens are given out, and its container is still to come
	for i := range nrNodes - 2 {
		r.mustRun(newPod(fmt.Sprint("early", i), ask{name: "main", cpus: 16}))
	}
	r.mustRun(newPod("last", ask{name: "main", cpus: 15}))
	more := newPod("more", ask{name: "main", cpus: 1})
	r.mustAdmit(more)
	if _, err := r.create(more, "main"); err == nil {
		t.Error("there is no CPU left but those that are promised, and one more container got one")
	}
	r.followsTokens(late, r.mustCreate(late, "main"))
}

// rejectAfterAllocate has a pod rejected whose first container was given 16 tokens.
func (r *rig) rejectAfterAllocate(name string) {
	r.Helper()
	p := newPod(name, ask{name: "first", cpus: 16, tokens: 16}, ask{name: "second", cpus: 120, tokens: 120})
	if err := r.kubelet.admit(p); err == nil || !strings.HasPrefix(err.Error(), admissionError) {
		r.Fatalf("136 of 127 tokens: %v", err)
	}
}

func TestTokensOfAPodThatWasRejectedAfterAllocateAreGivenToOthers(t *testing.T) {
	r := newRig(t, "none")
	for i := range 3 {
		r.rejectAfterAllocate(fmt.Sprint("big", i))
	}
	for i, nr := range everyToken {
		p := tokenPod(fmt.Sprint("db", i), int64(nr))
		r.followsTokens(p, r.mustRun(p))
	}
}

func TestTokensThatNobodyComesForAreReclaimed(t *testing.T) {
	r := newRig(t, "none", "topologyManagerPolicy=single-numa-node", "devicePlugin.reclaimAfter=5s")
	ended := tokenPod("ended", 16)
	r.mustRun(ended)
	r.rejectAfterAllocate("big")
	r.end(ended)
	start := time.Now()
	for i, nr := range everyToken {
		alone := newPod(fmt.Sprint("alone", i), ask{name: "main", cpus: int64(nr)})
		r.mustAdmit(alone)
		_, err := r.create(alone, "main")
		for ; err != nil; _, err = r.create(alone, "main") {
			if time.Since(start) > reclaimed {
				t.Fatalf("after %v: %v", reclaimed, err)
			}
			time.Sleep(time.Second) // nobody tells when
		}
	}
	took := time.Since(start)
	t.Logf("all CPUs were free %v after the pods had gone", took.Round(time.Second))
	if took < kept {
		t.Errorf("tokens were kept for %v only: a container may still come for them", took)
	}
}

func TestARestartedContainerHasTheSameTokens(t *testing.T) {
	r := newRig(t, "restricted")
	db := tokenPod("db", 6)
	first := r.mustRun(db)
	annotations, err := r.kubelet.annotations(db, containerOf(db, "main"))
	if err != nil {
		t.Fatal(err)
	}
	r.stop(first) // it ends first, and the runtime tells so
	second, err := r.createWith(db, "main", "ctr-db-again", annotations)
	if err != nil {
		t.Fatalf("restarted: %v", err)
	}
	r.followsTokens(db, second)
	delete(r.containers, second.Id) // or nobody tells of its end
	third, err := r.createWith(db, "main", "ctr-db-once-more", annotations)
	if err != nil {
		t.Fatalf("restarted once more: %v", err)
	}
	r.followsTokens(db, third)
	if on := r.kubelet.healthyOn(cpuResource); on != everyToken {
		t.Errorf("tokens %v", on)
	}
}

func TestALeaseOutlivesTheDaemon(t *testing.T) {
	r := newRig(t, "restricted")
	db, web := tokenPod("db", 6), tokenPod("web", 5)
	c := r.mustRun(db)
	r.mustAdmit(web)
	r.killDaemon()
	r.startDaemon()
	r.waitConnected()
	r.waitTokens()
	r.followsTokens(web, r.mustCreate(web, "main"))
	r.followsTokens(db, c)
	annotations, _ := r.kubelet.annotations(db, containerOf(db, "main"))
	r.stop(c)
	again, err := r.createWith(db, "main", "ctr-db-again", annotations)
	if err != nil {
		t.Fatal(err)
	}
	r.followsTokens(db, again)
}

func TestAnInitContainersTokensAreUsedAgain(t *testing.T) {
	for _, policy := range []string{"none", "restricted", "single-numa-node"} {
		t.Run(policy, func(t *testing.T) {
			r := newRig(t, policy)
			p := newPod("job", ask{name: "prepare", kind: "init", cpus: 4, tokens: 4},
				ask{name: "main", cpus: 2, tokens: 2})
			r.mustAdmit(p)
			before, after := r.kubelet.held(p, "prepare", cpuResource), r.kubelet.held(p, "main", cpuResource)
			for id := range after {
				if _, ok := before[id]; !ok {
					t.Errorf("the device manager gave %v, then %v", before, after)
				}
			}
			prepare := r.mustCreate(p, "prepare")
			r.followsTokens(p, prepare)
			r.stop(prepare)
			r.followsTokens(p, r.mustCreate(p, "main"))
		})
	}
}

func TestAnAppLargerThanItsInitContainerGetsMoreBeside(t *testing.T) {
	r := newRig(t, "restricted")
	p := newPod("job", ask{name: "prepare", kind: "init", cpus: 2, tokens: 2},
		ask{name: "main", cpus: 5, tokens: 5}, ask{name: "beside", cpus: 3, tokens: 3})
	r.mustAdmit(p)
	prepare := r.mustCreate(p, "prepare")
	r.followsTokens(p, prepare)
	r.stop(prepare)
	for _, name := range []string{"main", "beside"} {
		r.followsTokens(p, r.mustCreate(p, name))
	}
}

func TestForgedAnnotations(t *testing.T) {
	r := newRig(t, "restricted")
	owner := tokenPod("owner", 4)
	its := r.mustRun(owner)
	annotations, err := r.kubelet.annotations(owner, containerOf(owner, "main"))
	if err != nil || annotations[allocated] == "" {
		t.Fatalf("annotations %v: %v", annotations, err)
	}
	coming := tokenPod("coming", 4) // its tokens are given out, and nobody has come for them
	r.mustAdmit(coming)
	expected, err := r.kubelet.annotations(coming, containerOf(coming, "main"))
	if err != nil {
		t.Fatal(err)
	}

	t.Run("on the pod: it is not even read", func(t *testing.T) {
		p := newPod("forger", ask{name: "main", cpus: 4})
		p.Annotations[allocated] = expected[allocated]
		c := r.mustRun(p)
		if got := own(r.node, c); len(got) != 4 || !got.disjoint(own(r.node, its)) {
			t.Errorf("CPUs %s", c.Linux.Resources.Cpu.Cpus)
		}
		r.end(p)
	})
	for _, one := range []struct {
		name, value string
		cpus        int64
	}{
		{"tokens that were never leased", "v1:1:7=0-3", 4},
		{"a lease of which nobody ever heard", "v1:4711:7=0-3", 4},
		{"somebody else's live lease", annotations[allocated], 4},
		{"somebody else's lease that waits for its container", expected[allocated], 4},
		{"another number of CPUs, fewer", expected[allocated], 2},
		{"another number of CPUs, more", expected[allocated], 6},
		{"tokens that the machine lacks", "v1:1:0=90-93", 4},
		{"a NUMA node that the machine lacks", "v1:1:77=0-3", 4},
		{"another version", strings.Replace(annotations[allocated], "v1:", "v2:", 1), 4},
		{"no tokens at all", "v1:1:", 4},
		{"words", "please", 4},
		{"very much of it", strings.Repeat("v1:1:0=0-3,", 4000), 4},
	} {
		t.Run(one.name, func(t *testing.T) {
			p := newPod("forger", ask{name: "main", cpus: one.cpus})
			r.mustAdmit(p)
			defer r.end(p)
			c, err := r.createWith(p, "main", "ctr-forger", map[string]string{allocated: one.value})
			if err == nil {
				t.Errorf("it runs on %s", c.Linux.Resources.Cpu.Cpus)
			} else {
				t.Logf("refused: %v", err)
			}
		})
	}
	t.Run("by a container that has tokens of its own", func(t *testing.T) {
		p := tokenPod("forger", 4)
		r.mustAdmit(p)
		defer r.end(p)
		if c, err := r.createWith(p, "main", "ctr-swap", map[string]string{allocated: expected[allocated]}); err == nil {
			t.Errorf("it runs on %s", c.Linux.Resources.Cpu.Cpus)
		}
		r.followsTokens(p, r.mustCreate(p, "main")) // with its own ones it may
	})
	t.Run("by a plain init container, which PodResources does not show", func(t *testing.T) {
		p := newPod("forger", ask{name: "prepare", kind: "init", cpus: 4}, ask{name: "main", cpus: 1})
		r.mustAdmit(p)
		defer r.end(p)
		if c, err := r.createWith(p, "prepare", "ctr-init", map[string]string{allocated: expected[allocated]}); err == nil {
			t.Errorf("it runs on %s", c.Linux.Resources.Cpu.Cpus)
		}
	})
	t.Run("for a container that is being restarted", func(t *testing.T) {
		p := tokenPod("restarting", 4)
		c := r.mustRun(p)
		waiting, err := r.kubelet.annotations(p, containerOf(p, "main"))
		if err != nil {
			t.Fatal(err)
		}
		r.stop(c)
		forger := newPod("forger", ask{name: "main", cpus: 4})
		r.mustAdmit(forger)
		if c, err := r.createWith(forger, "main", "ctr-forger", map[string]string{allocated: waiting[allocated]}); err == nil {
			t.Errorf("it runs on %s", c.Linux.Resources.Cpu.Cpus)
		}
		r.end(forger)
		again, err := r.createWith(p, "main", "ctr-restarting-again", waiting)
		if err != nil {
			t.Fatal(err)
		}
		r.followsTokens(p, again)
		r.end(p)
	})
	t.Run("by a container that starts while numafitd is away", func(t *testing.T) {
		p := newPod("forger", ask{name: "main", cpus: 4})
		r.mustAdmit(p)
		defer r.end(p)
		r.killDaemon()
		if _, err := r.createWith(p, "main", "ctr-away", map[string]string{allocated: expected[allocated]}); err != nil {
			t.Fatal(err)
		}
		r.startDaemon()
		r.waitConnected()
		registered := func() any { return r.kubelet.healthyOn(cpuResource) != [nrNodes]int{} }
		r.kubelet.await("the tokens are registered", registered, true) // but those of its CPUs
		r.followsTokens(coming, r.mustCreate(coming, "main"))
		r.end(coming)
		r.mustAdmit(coming)
	})
	t.Run("in the environment: it is not even read", func(t *testing.T) {
		p := newPod("forger", ask{name: "main", cpus: 4})
		r.mustAdmit(p)
		defer r.end(p)
		if err := r.runSandbox(p); err != nil {
			t.Fatal(err)
		}
		sandbox, c := r.container("", want{pod: p.Name, id: "ctr-env", milli: 4000, memory: gi})
		c.Env = append(c.Env, allocated+"="+expected[allocated], "NUMAFIT_ALLOCATED="+expected[allocated])
		if err := r.ask(context.Background(), sandbox, c); err != nil {
			t.Fatal(err)
		}
		r.check()
	})
	t.Run("by the pod, on a runtime that copies its annotations to its containers", func(t *testing.T) {
		p := newPod("forger", ask{name: "main", cpus: 4})
		p.Annotations[allocated] = expected[allocated]
		r.mustAdmit(p)
		defer r.end(p)
		c, err := r.createWith(p, "main", "ctr-copied", p.Annotations)
		if err != nil {
			t.Fatal(err)
		}
		if got := own(r.node, c); len(got) != 4 || !got.disjoint(own(r.node, its)) {
			t.Errorf("CPUs %s", c.Linux.Resources.Cpu.Cpus)
		}
		one := r.mustCreate(coming, "main") // nobody has its tokens
		r.followsTokens(coming, one)
		r.stop(one)
		delete(r.containers, one.Id)
	})

	// All this has changed nothing for those whose tokens they are.
	r.followsTokens(coming, r.mustCreate(coming, "main"))
	r.followsTokens(owner, its)
}

// A kubelet that does not know the resource yet admits whoever asks for it, and gives nothing.
func TestPodsThatComeWithoutTheirTokensGoByNRIAlone(t *testing.T) {
	r := newRig(t, "none")
	p := tokenPod("early", 4)
	r.kubelet.know(p)
	r.kubelet.news.updated(p, true)
	c, err := r.createWith(p, "main", "ctr-early", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := everyToken
	want[r.onlyNode(r.cpusOn(c))] -= 4
	r.sees(time.Now(), want) // they cannot be sold twice
}

func TestContainersWaitWhileTheRuntimeIsNotConnected(t *testing.T) {
	r := prepareRig(t, "none", nil, services...)
	real := r.socket
	r.socket = filepath.Join(r.dir, "relay.sock")
	r.startRuntime()
	cut := r.relay(r.socket, real)
	r.startDaemon()
	r.waitConnected()
	r.waitTokens()
	p := tokenPod("db", 4)
	r.mustAdmit(p)
	refused := func() any {
		_, err := r.kubelet.annotations(p, containerOf(p, "main"))
		return err != nil
	}
	r.kubelet.await("it waits while the runtime is there", refused, false)
	cut()
	r.runtime.Stop()
	r.kubelet.await("it waits while the runtime is away", refused, true)
	r.startRuntime()
	defer r.relay(r.socket, real)()
	r.waitConnected()
	r.kubelet.await("it waits while the runtime is there again", refused, false)
	r.followsTokens(p, r.mustCreate(p, "main"))
}
