package main

import (
	"reflect"
	_ "unsafe" // for go:linkname

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
	"unsafe"
)

// Upstream's unexported functions; upstream.s lets the compiler accept them without a body.

//go:linkname takePacked k8s.io/kubernetes/pkg/kubelet/cm/cpumanager.takeByTopologyNUMAPacked
func takePacked(_ klog.Logger, _ *topology.CPUTopology, available cpuset.CPUSet, want int,
	_ cpumanager.CPUSortingStrategy, uncore bool) (cpuset.CPUSet, error)

//go:linkname newDeviceManager k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newDeviceManager(_ klog.Logger, socket string, _ []numaNode,
	_ topologymanager.Store) (*devicemanager.ManagerImpl, error)

// field reaches an unexported field of the struct that object points to: what the managers'
// Start() would fill in, without its files, sockets and goroutines.
func field[T any](object any, name string) *T {
	f := reflect.ValueOf(object).Elem().FieldByName(name)
	if f.Type() != reflect.TypeFor[T]() {
		panic(name + " is a " + f.Type().String())
	}
	return (*T)(unsafe.Pointer(f.UnsafeAddr()))
}
