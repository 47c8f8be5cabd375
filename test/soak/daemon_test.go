package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// numafitd as a process: how it is started, how it ends, what it says of itself.

// life is one process of it, from its start to its end.
type life struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed when it has ended, with how in err
	err    error
	asked  bool   // somebody wanted it to end, or let it die
	fault  string // NUMAFIT_FAULT
	joined bool   // it is in the runtime's chain
	first  usage  // as it joined
}

type daemon struct {
	*soak
	*life
	config map[string]string // what its file says
	fixed  []string          // settings on its command line
	lives  int
}

func newDaemon(s *soak, fixed ...string) *daemon {
	return &daemon{soak: s, fixed: fixed, config: map[string]string{}}
}

func (d *daemon) path(name string) string { return filepath.Join(d.dir, name) }

// writeConfig puts the settings into the file as a whole, as an editor or the kubelet does.
func (d *daemon) writeConfig(text string) {
	d.must(os.WriteFile(d.path("new.yaml"), []byte(text), 0o600))
	d.must(os.Rename(d.path("new.yaml"), d.path("numafitd.yaml")))
}

// yaml is the settings as a file, one level of maps where a key has a dot.
func yaml(settings map[string]string) string {
	var text strings.Builder
	keys := sortedKeys(settings)
	section := ""
	for _, key := range keys {
		head, rest, nested := strings.Cut(key, ".")
		if nested && head != section {
			fmt.Fprintf(&text, "%s:\n", head)
		}
		section = ""
		if nested {
			section = head
			fmt.Fprintf(&text, "  %s: %s\n", rest, settings[key])
		} else {
			fmt.Fprintf(&text, "%s: %s\n", key, settings[key])
		}
	}
	return text.String()
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// command runs numafitd on the soak's machine.
func (d *daemon) command(args ...string) *exec.Cmd {
	for _, s := range d.fixed {
		args = append(args, "--set", s)
	}
	c := exec.Command(absolute(os.Getenv("NUMAFITD")), args...)
	if d.machine.root != "" {
		c.Path = "/programs/" + filepath.Base(c.Path)
		c.Dir = "/"
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: d.machine.root}
	}
	return c
}

// start runs a new process; fault is where it is to die, or "".
func (d *daemon) start(fault string) {
	out, err := os.OpenFile(d.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	d.must(err)
	defer out.Close()
	l := &life{cmd: d.command("--config", d.path("numafitd.yaml")), ended: make(chan struct{}), fault: fault, asked: fault != ""}
	l.cmd.Stdout, l.cmd.Stderr = out, out
	if fault != "" {
		l.cmd.Env = append(os.Environ(), "NUMAFIT_FAULT="+fault)
	}
	d.must(l.cmd.Start())
	go func() {
		l.err = l.cmd.Wait()
		close(l.ended)
	}()
	d.life = l
	d.lives++
}

// kill is SIGKILL, from any goroutine.
func (l *life) kill() { l.cmd.Process.Kill() }

func (l *life) hasEnded() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// isEnding: it has ended, or is about to as its connections are gone already.
func (l *life) isEnding() bool {
	select {
	case <-l.ended:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// inChain: it runs, and the runtime asks it.
func (d *daemon) inChain() bool { return d.life != nil && d.joined && !d.hasEnded() }

// terminate ends it as systemd and the kubelet do; it has to leave in good order.
func (d *daemon) terminate() {
	d.asked = true
	d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.violated("numafitd runs still %v after SIGTERM", patience)
		d.kill()
		<-d.ended
	}
	if d.err != nil && d.fault == "" {
		d.violated("numafitd after SIGTERM: %v", d.err)
	}
}

// join waits until the process is in the runtime's chain. False: it died before, as it was to.
func (d *daemon) join() bool {
	for deadline := time.After(patience); ; {
		select {
		case <-d.runtime.connected:
			// that may have been its predecessor, which is gone again
			if s, err := d.ask(); err != nil || s.Connection != "ready" {
				continue
			}
			d.joined = true
			d.first = d.usage()
			return true
		case <-d.ended:
			if !d.asked {
				d.violated("numafitd ended by itself while it started: %v", d.err)
			}
			return false
		case <-deadline:
			d.violated("numafitd is not connected after %v", patience)
			return false
		}
	}
}

// Its words

type nodeStatus struct {
	Connection string
	Generation uint64
	Config     struct {
		Reloads, Refusals uint64
		Refused, Restart  string
	}
	Kubelet struct {
		Tokens, Unhealthy, Leased, Waiting int
	}
	Settings map[string]string
	Pool     string
	Nodes    []struct {
		ID       int
		CPUs     int
		CPUsHeld int `json:"cpus_held"`
		Memory   []struct {
			Type              string
			Allocatable, Free uint64
		}
	}
	Containers []holding
}

type holding struct {
	Pod, Container, ID, Source string
	Exclusive                  bool
	CPUs, Mems                 string
}

// ask gets what `numafit status` prints.
func (d *daemon) ask() (s nodeStatus, err error) {
	c, err := net.DialTimeout("unix", d.path("run/numafitd.sock"), patience)
	if err != nil {
		return s, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err = io.WriteString(c, "status\n"); err != nil {
		return s, err
	}
	text, err := io.ReadAll(c)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// await asks until what it says is so, and fails with the last reason why it is not. What is
// waited for comes without a sign of its own: a file is read, a timer runs out.
func (d *daemon) await(what string, so func(*nodeStatus) string) bool {
	deadline := time.Now().Add(patience)
	for {
		s, err := d.ask()
		if err != nil && d.isEnding() {
			return false
		}
		why := fmt.Sprint(err)
		if err == nil {
			if why = so(&s); why == "" {
				return true
			}
		}
		if time.Now().After(deadline) {
			d.violated("%s, %v later: %s", what, patience, why)
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// usage is what the process has of the machine.
type usage struct {
	rssKiB, descriptors int
}

func (l *life) usage() (u usage) {
	dir := fmt.Sprintf("/proc/%d", l.cmd.Process.Pid)
	text, _ := os.ReadFile(dir + "/status")
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			u.rssKiB, _ = strconv.Atoi(f[1])
		}
	}
	fds, err := os.ReadDir(dir + "/fd")
	if err == nil || errors.Is(err, os.ErrNotExist) {
		u.descriptors = len(fds)
	}
	return u
}
