package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
)

// numafitd as a plugin that the runtime starts itself, from a directory of plugins. As it gives no
// options, the program there is a script that does.

// newLaunchedNode puts the script there; the runtime is yet to start.
func newLaunchedNode(t *testing.T, settings ...string) *node {
	n := makeNode(t, settings...)
	n.plugins = filepath.Join(n.dir, "plugins")
	quoted := ""
	for _, word := range n.command() {
		if !strings.Contains(word, "/") || filepath.IsAbs(word) || strings.Contains(word, "=") {
			quoted += " '" + word + "'"
		} else {
			path, _ := filepath.Abs(word)
			quoted += " '" + path + "'"
		}
	}
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%s/pid\nexec %s 2>>%s/log\n", n.dir, quoted, n.dir)
	err := os.Mkdir(n.plugins, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(n.plugins, "30-numafit"), []byte(script), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(n.plugins, "numafit.conf"), []byte("mode: off\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) launchedPid() int {
	n.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, "pid"))
	pid, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || err2 != nil {
		n.Fatal("the runtime did not start the script")
	}
	return pid
}

// waitEnd waits until the process is gone, or a zombie that the runtime forgot.
func (n *node) waitEnd(pid int) {
	n.Helper()
	for start := time.Now(); time.Since(start) < patience; time.Sleep(2 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	n.Fatalf("numafitd, process %d, still runs", pid)
}

func TestLaunchedByTheRuntime(t *testing.T) {
	n := newLaunchedNode(t, "reservedSystemCPUs=0-1")
	n.startRuntime()
	pid := n.launchedPid()
	db, web := n.mustCreate("db", guaranteed(4)), n.mustCreate("web", shared)
	if s := cpus(n, db); len(s) != 4 || !s.disjoint(cpus(n, web)) {
		t.Errorf("db %s, web %s", db.Linux.Resources.Cpu.Cpus, web.Linux.Resources.Cpu.Cpus)
	}
	n.waitLog(1, "nri-config-ignored")
	n.runtime.Stop()
	n.waitEnd(pid)
}

// The runtime is started again beside containers that run; up to 0.6.1 it does not tell of them.
func TestLaunchedAgainItAdoptsWhatRuns(t *testing.T) {
	n := newLaunchedNode(t)
	n.startRuntime()
	db := n.mustCreate("db", guaranteed(120))
	n.runtime.Stop()
	n.waitEnd(n.launchedPid())
	os.RemoveAll(filepath.Join(n.dir, "run")) // nor does a journal
	n.startRuntime()
	if !chunks {
		n.waitLog(1, "nri-not-synchronized")
		time.Sleep(slowly(50 * time.Millisecond)) // no watchdog ends it: the next call is answered
		p := n.pods[db.PodSandboxId]
		if err := n.runtime.PostCreateContainer(context.Background(), &nri.PostCreateContainerRequest{Pod: p, Container: db}); err != nil {
			t.Fatal(err)
		}
	}
	n.waitLog(1, "cause=adopt")
	if _, err := n.create("twice", guaranteed(120)); err == nil {
		t.Error("the CPUs of the adopted container are given again")
	}
}

func TestLaunchedItEndsWithItsConnection(t *testing.T) {
	n := newLaunchedNode(t)
	n.startRuntime()
	pid := n.launchedPid()
	p, c := n.sandbox("db", guaranteed(4))
	nri.SetPluginRequestTimeout(100 * time.Millisecond)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	err := n.ask(context.Background(), p, c)
	if !failurePolicy && err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err == nil && failurePolicy {
		n.runtime.Stop() // it is kept
	}
	n.waitEnd(pid)
}

func TestLaunchedItSaysWhyItEnds(t *testing.T) {
	n := makeNode(t)
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(n.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	theirs := os.NewFile(uintptr(ends[1]), "numafitd's")
	args := n.command()
	daemon := exec.Command(args[0], args[1:]...)
	daemon.Stderr, daemon.ExtraFiles = out, []*os.File{theirs}
	daemon.Env = []string{"NRI_PLUGIN_NAME=numafit", "NRI_PLUGIN_IDX=30", "NRI_PLUGIN_SOCKET=3"}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	n.waitLog(1, "event=started")
	syscall.Read(ends[0], make([]byte, 4096)) // the registration
	syscall.Close(ends[0])
	defer time.AfterFunc(patience, func() { daemon.Process.Kill() }).Stop()
	if err := daemon.Wait(); err != nil {
		t.Error(err)
	}
	n.waitLog(1, "nri-disconnected")
	n.waitLog(1, "event=stopped")
}
