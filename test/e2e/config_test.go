package e2e

import "strings"

// containerd's configuration: all of it below DIR, no network, and NRI on.

const configHead = `
root = 'DIR/root'
state = 'DIR/state'
oom_score = 0
[grpc]
  address = 'DIR/containerd.sock'
[ttrpc]
  address = 'DIR/containerd.sock.ttrpc'
[plugins.'io.containerd.internal.v1.opt']
  path = 'DIR/opt'
[plugins.'io.containerd.nri.v1.nri']
  disable = false
  socket_path = 'DIR/nri.sock'
  plugin_path = 'DIR/nri'
  plugin_config_path = 'DIR/nri'
  plugin_registration_timeout = '30s'
  plugin_request_timeout = 'TIMEOUT'
`

// Version 2, of containerd 1.7.
const configCRI = `
[plugins.'io.containerd.grpc.v1.cri']
  sandbox_image = 'IMAGE'
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins.'io.containerd.grpc.v1.cri'.containerd]
  snapshotter = 'native'
[plugins.'io.containerd.grpc.v1.cri'.cni]
  conf_dir = 'DIR/cni'
[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
  BinaryName = 'RUNC'
  Root = 'DIR/runc-state'
`

// Version 3, of containerd 2.
const configRuntime = `
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'native'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'IMAGE'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  conf_dir = 'DIR/cni'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = 'RUNC'
  Root = 'DIR/runc-state'
`

// Containers are held back while this plugin is not there; of containerd 2.2 and newer.
const configRequired = `
[plugins.'io.containerd.nri.v1.nri'.default_validator]
  enable = true
  required_plugins = ['numafit']
`

func containerdConfig(version, dir, runc, timeout string, required bool) string {
	text := "version = 3\n" + configHead + configRuntime
	if strings.HasPrefix(version, "v1.") {
		text = "version = 2\n" + configHead + configCRI
	}
	if required {
		text += configRequired
	}
	return strings.NewReplacer("DIR", dir, "IMAGE", image, "RUNC", runc, "TIMEOUT", timeout).Replace(text)
}
