package main

// The API server's objects, as far as the plugins look at them.

type amounts map[string]any // resource -> a quantity, as a text or a number

type resources struct {
	Requests amounts `json:"requests,omitempty"`
	Limits   amounts `json:"limits,omitempty"`
}

type container struct {
	Name          string     `json:"name"`
	RestartPolicy string     `json:"restartPolicy,omitempty"`
	Resources     *resources `json:"resources,omitempty"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	UID       string `json:"uid,omitempty"`
}

type podSpec struct {
	InitContainers []container `json:"initContainers,omitempty"`
	Containers     []container `json:"containers"`
	Overhead       amounts     `json:"overhead,omitempty"`
	Resources      *resources  `json:"resources,omitempty"`
}

type podStatus struct {
	QOSClass string `json:"qosClass,omitempty"`
}

type pod struct {
	Metadata metadata   `json:"metadata"`
	Spec     podSpec    `json:"spec"`
	Status   *podStatus `json:"status,omitempty"`
}

type nodeStatus struct {
	Allocatable amounts `json:"allocatable,omitempty"`
	Capacity    amounts `json:"capacity,omitempty"`
}

type node struct {
	Metadata metadata   `json:"metadata"`
	Status   nodeStatus `json:"status"`
}

type attribute struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type cost struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

type zoneResource struct {
	Name        string `json:"name"`
	Capacity    any    `json:"capacity"`
	Allocatable any    `json:"allocatable"`
	Available   any    `json:"available"`
}

type zone struct {
	Name      string         `json:"name"`
	Type      string         `json:"type"`
	Parent    string         `json:"parent,omitempty"`
	Costs     []cost         `json:"costs,omitempty"`
	Resources []zoneResource `json:"resources,omitempty"`
}

type topology struct {
	APIVersion       string      `json:"apiVersion"`
	Kind             string      `json:"kind"`
	Metadata         metadata    `json:"metadata"`
	TopologyPolicies []string    `json:"topologyPolicies,omitempty"`
	Attributes       []attribute `json:"attributes,omitempty"`
	Zones            []zone      `json:"zones"`
}

type candidate struct {
	Node     node      `json:"node"`
	Topology *topology `json:"topology,omitempty"`
	Pods     []pod     `json:"pods,omitempty"`
}

// question is what numafit is asked.
type question struct {
	Name       string      `json:"name"`
	Plugin     string      `json:"plugin"`
	Compat     bool        `json:"compat,omitempty"`
	Reproduces string      `json:"reproduces,omitempty"`
	Args       any         `json:"args"`
	Nodes      []candidate `json:"nodes"`
	Pod        pod         `json:"pod"`
}
