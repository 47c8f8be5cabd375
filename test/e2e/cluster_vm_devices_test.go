package e2e

import (
	"strings"
	"testing"
	"time"
)

// A cluster whose node is a virtual machine with PCI devices on several NUMA nodes (vm-devices.sh), of which some are a
// device's memory and have no CPUs. The control plane is on this machine; device plugins, a DRA driver and
// the steps are in the node (inside_devices_test.go).

// deviceSettings are numafitd's. The node's own token may read its ResourceSlices.
const deviceSettings = `topologyManagerPolicy: restricted
reservedSystemCPUs: "0"
podResources: {enabled: true}
deviceClaims: {enabled: true, wait: 1500ms}
apiServer: {kubeconfig: /etc/kubernetes/node.kubeconfig}
metrics: {address: ""}
`

// TestClusterVMDevices: NODE_VM is the command that boots the node.
func TestClusterVMDevices(t *testing.T) {
	patience, again = 15*time.Minute, time.Second // the node is slow
	c := emptyCluster(t)
	c.gates = "DRAListTypeAttributes=true"
	t.Cleanup(c.endWithVM)
	c.startControlPlane()
	c.bootNode(map[string]string{
		strings.TrimPrefix(settingsFile, "/"):                        deviceSettings,
		strings.TrimPrefix(insideDir, "/") + "/" + certificateInside: c.read(c.certificate()) + "\n"})
	c.awaitNode()
	c.within("TestInClusterDevices")
}
