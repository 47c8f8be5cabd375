package e2e

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A node that loses power with pods that have claims, and starts again. What is in memory alone is
// gone: the journal, the CDI files, the runtime's state. What is on disk is there, and the kubelet's
// checkpoint of claims with it.

const (
	afterReboot   = "a node that boots again"
	poweredOff    = "powered off"   // among what runc was asked for
	rebootPatient = 5 * time.Minute // the kubelet tries a Prepare that found no driver again after 78 s
)

func (c *cluster) bootsAgain() {
	pods := []string{"claim-boot-a", "claim-boot-b"}
	for _, pod := range pods {
		c.claims(pod, claimFour)
	}
	c.create("plain-boot", guaranteed, want{name: "main", milli: 3000, memory: 16 * mi})
	for _, pod := range pods {
		c.runsOnClaim(pod, claimCPUs)
	}
	c.await("plain-boot to run", func() bool { return len(c.lives().of("plain-boot", "main")) == 1 })
	c.losePower()
	began := time.Now()
	c.node.startRuntime()
	c.startKubelet()
	for _, pod := range append(pods, "plain-boot") {
		for len(c.lives().of(pod, "main")) != 1 || !c.pod(pod).ready() {
			if time.Since(began) > rebootPatient {
				c.Fatalf("%s does not run again: %+v", pod, c.pod(pod))
			}
			time.Sleep(claimStormTurn)
		}
	}
	c.Logf("figure: all pods run again %.0f s after the node has started", time.Since(began).Seconds())
	c.awaitRollout()
	c.look()
	for _, pod := range pods {
		c.awaitPlacedOn(pod, claimCPUs, c.share(c.claimOf(pod), podClaim).numaNode)
	}
	c.checkNothingIsShared()
}

// losePower ends everything of the node at once, and leaves what a disk would have.
func (c *cluster) losePower() {
	c.Helper()
	c.kubeletProcess.kill()
	c.server.kill()
	for deadline := time.Now().Add(patience); c.killAllOfNode(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.Fatal("processes of the node do not end")
		}
	}
	c.unmountBelow(c.path("state"), kubeletRoot, "/run/containerd", "/run/netns")
	for _, dir := range []string{c.path("state"), c.path("runc-state"), "/run/containerd", "/run/numafit", "/run/cdi", "/run/netns"} {
		c.must(os.RemoveAll(dir))
	}
	for _, root := range cgroupRoots() {
		removeBelow(filepath.Join(root, c.cgroup(), "kubepods"))
	}
	c.must((&asked{Op: poweredOff}).append(c.path("runc")))
}

// killAllOfNode kills shims, and what runs in cgroups of pods; false: nothing of it is left.
func (c *cluster) killAllOfNode() (any bool) {
	c.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	c.must(err)
	for _, p := range processes {
		name, _ := os.ReadFile(filepath.Join(p, "comm"))
		cgroups, _ := os.ReadFile(filepath.Join(p, "cgroup"))
		if !strings.HasPrefix(string(name), "containerd-shim") && !strings.Contains(string(cgroups), "/kubepods/") {
			continue
		}
		if state, _ := os.ReadFile(filepath.Join(p, "stat")); strings.Contains(string(state), ") Z ") {
			continue // nobody waits for it
		}
		pid, err := strconv.Atoi(filepath.Base(p))
		c.must(err)
		any = syscall.Kill(pid, syscall.SIGKILL) == nil || any
	}
	return any
}

func (c *cluster) unmountBelow(dirs ...string) {
	c.Helper()
	f, err := os.Open("/proc/self/mounts")
	c.must(err)
	defer f.Close()
	var points []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		point := strings.Fields(lines.Text())[1]
		if slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(point, dir+"/") }) {
			points = append(points, point)
		}
	}
	for _, point := range slices.Backward(points) { // the one that was mounted last goes first
		c.must(syscall.Unmount(point, syscall.MNT_DETACH))
	}
}

// removeBelow removes the cgroups below that one.
func removeBelow(root string) {
	var all []string
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root {
			all = append(all, path)
		}
		return nil
	})
	for _, dir := range slices.Backward(all) {
		syscall.Rmdir(dir)
	}
}
