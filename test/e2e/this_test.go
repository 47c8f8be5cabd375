package e2e

import (
	"runtime"
	"testing"
)

// This machine's own CPUs, with nothing between: what numafitd decides is what the kernel does.

func TestInForceOnThisMachine(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	n := newNode(t, options{machine: this, settings: []string{"reservedSystemCPUs=0", "sharedPoolStep=0"}})
	one := want{name: "one", milli: 1000, memory: 64 * mi}
	shared := n.startPod("batch", burstable, batch...).containers["batch"]
	all := n.check()
	own := n.startPod("own", guaranteed, one, want{name: "part", milli: 300, memory: 64 * mi})
	taken := n.check()
	if h := n.held(own.containers["one"]); !h.Exclusive || len(n.set(h.CPUs)) != 1 || taken.Pool == all.Pool {
		t.Errorf("%+v beside the pool %s, which was %s", h, taken.Pool, all.Pool)
	}
	before := picture(taken)

	n.killDaemon()
	late := n.startPod("late", burstable, batch...).containers["batch"]
	if cpus, _ := n.inForce(late); cpus == taken.Pool {
		t.Errorf("nobody placed it, and yet it runs on %s", cpus)
	}
	n.startDaemon()
	n.settle()
	n.removePod(n.pods["late"])
	n.checkUnmoved(before)

	n.server.stop(t)
	n.startRuntime()
	n.waitConnected()
	n.checkUnmoved(before)

	n.setCPUs(shared, all.Pool, "")
	n.checkUnmoved(before)

	n.removePod(own)
	if s := n.check(); s.Pool != all.Pool {
		t.Errorf("the pool was %s at first and is %s in the end", all.Pool, s.Pool)
	}
}
