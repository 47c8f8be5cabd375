package e2e

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// The services of a virtual machine's node: what they say, how they end and come back, and numafitd's settings.

const settingsFile = "/etc/numafit/numafitd.yaml"

var services = []string{"containerd", "numafitd", "kubelet"}

// report shows what the services said of late, and what is in force.
func (n *node) report() {
	for _, name := range services {
		n.Logf("%s said of late:\n%s", name, n.said(name, 60))
	}
	out, _ := exec.Command("numafit", "status", "--socket", n.path("run/numafitd.sock")).CombinedOutput()
	n.Logf("numafit status:\n%s", out)
}

// said are the last lines of a service's log.
func (n *node) said(name string, lines int) string {
	if !hasSystemd() {
		text := strings.Split(strings.TrimSpace(tail("/var/log/"+name+".log")), "\n")
		return strings.Join(text[max(0, len(text)-lines):], "\n")
	}
	out, _ := exec.Command("journalctl", "--no-pager", "-o", "cat", "-u", name, "-n", strconv.Itoa(lines)).CombinedOutput()
	return string(out)
}

// refusal is what numafitd says of a pod that it has refused with its sandbox, of which the kubelet's status
// has no word; "": nothing.
func (n *node) refusal(pod string) string {
	n.Helper()
	for _, l := range strings.Split(n.said("numafitd", 60), "\n") {
		if strings.Contains(l, "event=pod-refused") && strings.Contains(l, pod+"-"+nodeName) {
			return l
		}
	}
	return ""
}

func hasSystemd() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

// mainPID is the process of a service; 0: there is none.
func (n *node) mainPID(name string) int {
	n.Helper()
	text := ""
	if hasSystemd() {
		text = n.run("systemctl", "show", "-p", "MainPID", "--value", name)
	} else if file, err := os.ReadFile("/run/" + name + ".pid"); err == nil {
		text = string(file)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(text))
	if syscall.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

// signal ends a service's process, and waits until another one has come in its place and all is connected.
func (n *node) signal(name string, s syscall.Signal, meanwhile ...func()) {
	n.Helper()
	before := n.mainPID(name)
	if before == 0 {
		n.Fatalf("%s does not run", name)
	}
	n.must(syscall.Kill(before, s))
	for _, do := range meanwhile {
		do()
	}
	n.awaitAnother(name, before)
}

// awaitAnother waits until a service has another process than that one, and all is connected.
func (n *node) awaitAnother(name string, before int) {
	n.Helper()
	n.await(name+" to start again", func() bool {
		pid := n.mainPID(name)
		return pid != 0 && pid != before
	})
	if name == "containerd" {
		n.connect()
	}
	n.awaitInOrder()
}

// rest ends a service, which is not started again until it is to wake.
func (n *node) rest(name string) {
	n.Helper()
	if hasSystemd() {
		n.run("systemctl", "stop", name)
		return
	}
	n.must(os.WriteFile("/run/held/"+name, nil, 0o600))
	if pid := n.mainPID(name); pid != 0 {
		n.must(syscall.Kill(pid, syscall.SIGTERM))
	}
	n.await(name+" to end", func() bool { return n.mainPID(name) == 0 })
}

// wake has services start that rest. Those that run go on.
func (n *node) wake(names ...string) {
	n.Helper()
	if hasSystemd() {
		n.run("systemctl", append([]string{"start"}, names...)...)
		return
	}
	for _, name := range names {
		os.Remove("/run/held/" + name)
	}
}

// configure gives numafitd these settings beside the node's own until the end of the case. It reads them
// when they are there; those that a running one cannot take wait for its restart.
func (n *node) configure(more string) {
	n.Helper()
	saved := n.path("numafitd.yaml")
	if _, err := os.Stat(saved); err != nil {
		n.must(os.WriteFile(n.path("new.yaml"), []byte(n.read(settingsFile)+"\n"), 0o644))
		n.must(os.Rename(n.path("new.yaml"), saved))
		n.Cleanup(n.settingsAgain)
	}
	n.must(os.WriteFile(n.path("new.yaml"), []byte(n.read(saved)+"\n"+more), 0o644))
	n.must(os.Rename(n.path("new.yaml"), settingsFile))
}

// settingsAgain gives numafitd the node's own settings, if a case has changed them.
func (n *node) settingsAgain() {
	n.Helper()
	if os.Rename(n.path("numafitd.yaml"), settingsFile) == nil {
		n.startAnew()
	}
}

// startAnew ends numafitd in good order, and has it start again.
func (n *node) startAnew() {
	n.Helper()
	n.rest("numafitd")
	n.wake("numafitd")
	n.awaitConnected()
}
