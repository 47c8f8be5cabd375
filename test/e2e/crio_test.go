package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// CRI-O in containerd's place: all of it below DIR, no network, and NRI on.

// crio is the folder of its programs; "": the runtime is containerd.
var crio = os.Getenv("CRIO")

const configCRIO = `
[crio]
root = 'DIR/root'
runroot = 'DIR/state'
storage_driver = 'vfs'
log_dir = 'DIR/crio-logs'
version_file = 'DIR/version'
version_file_persist = 'DIR/version-persist'
clean_shutdown_file = 'DIR/clean'
internal_wipe = false
[crio.api]
listen = 'DIR/containerd.sock'
stream_address = '127.0.0.1'
stream_port = '0'
[crio.runtime]
cgroup_manager = 'cgroupfs'
conmon_cgroup = 'pod'
default_runtime = 'runc'
selinux = false
seccomp_profile = ''
apparmor_profile = 'unconfined'
pinns_path = 'PROGRAMS/pinns'
namespaces_dir = 'DIR/ns'
hooks_dir = []
cdi_spec_dirs = []
irqbalance_config_restore_file = 'disable'
disable_hostport_mapping = true # else it looks for iptables, and ends
container_exits_dir = 'DIR/exits'
container_attach_socket_dir = 'DIR/attach'
default_mounts_file = ''
[crio.runtime.runtimes.runc]
runtime_path = 'RUNC'
runtime_type = 'oci'
runtime_root = 'DIR/runc-state'
monitor_path = 'CONMON'
monitor_cgroup = 'pod'
[crio.image]
pause_image = 'IMAGE'
pause_command = ''
signature_policy = 'DIR/policy.json'
[crio.network]
network_dir = 'DIR/cni'
plugin_dirs = ['DIR/cni']
[crio.metrics]
enable_metrics = false
[crio.nri]
enable_nri = true
nri_listen = 'DIR/nri.sock'
nri_plugin_dir = 'DIR/nri'
nri_plugin_config_dir = 'DIR/nri'
nri_plugin_registration_timeout = '30s'
nri_plugin_request_timeout = 'TIMEOUT'
`

// prepareCRIO writes its configuration, and gives it the image, which only works while it does not run.
func (n *node) prepareCRIO() {
	n.Helper()
	conmon, err := exec.LookPath("conmon")
	n.must(err)
	for _, name := range []string{"cni", "nri", "ns", "exits", "attach", "crio.d"} {
		n.must(os.MkdirAll(n.path(name), 0o755))
	}
	n.must(os.WriteFile(n.path("policy.json"), []byte(`{"default":[{"type":"insecureAcceptAnything"}]}`), 0o600))
	n.must(os.WriteFile(n.path("crio.conf"), []byte(strings.NewReplacer("DIR", n.dir, "IMAGE", image, "RUNC", n.runc(),
		"TIMEOUT", n.timeout, "PROGRAMS", crio, "CONMON", conmon).Replace(configCRIO)), 0o600))
	n.giveImage("docker-archive:"+n.path("image.tar"), image)
}

func (n *node) giveImage(archive, name string) {
	n.Helper()
	n.run(filepath.Join(crio, "copyimg"), "--root", n.path("root"), "--runroot", n.path("state"), "--storage-driver", "vfs",
		"--signature-policy", n.path("policy.json"), "--import-from", archive, "--image-name", name, "--add-name", name)
}

func runtimeName() string {
	if crio != "" {
		return "crio"
	}
	return "containerd"
}

// A CNI plugin that says which versions it has, which CRI-O asks before it is ready. Pods that use it
// there are none: all are on the node's network.
const noPlugin = `#!/bin/sh
echo '{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}'
`

// startCRIO is startRuntime with CRI-O, which has to have all images before it runs.
func (c *cluster) startCRIO() {
	c.Helper()
	c.must(writeImage(c.path("image.tar")))
	c.prepareCRIO()
	text := strings.ReplaceAll(c.read(c.path("crio.conf")), c.path("nri.sock"), nriFolder+"/nri.sock")
	c.must(os.WriteFile(c.path("crio.conf"), []byte(text), 0o600))
	c.must(os.WriteFile(c.path("cni/loopback"), []byte(noPlugin), 0o755))
	for _, tag := range []string{c.tag, "next"} {
		c.giveImage("oci-archive:"+os.Getenv("IMAGE"), "localhost/numafit:"+tag)
	}
	c.must(os.Symlink("/run/numafit", c.path("run"))) // where status() asks
	c.node.startRuntime()
}
