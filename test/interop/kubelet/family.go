package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
)

// family is what the hints of one provider follow from (see src/questions/families_json.h).
type family struct{ rule }

type rule interface {
	// hints are what the provider hands to the Topology Manager, on a machine of these nodes:
	// nil and an empty map differ, and so do a nil and an empty list.
	hints(nodes []int) map[string][]hint
	// with names what is worth counting; sockets is one of it.
	with() []string
}

func (f *family) MarshalJSON() ([]byte, error) { return json.Marshal(f.rule) }

func (f *family) UnmarshalJSON(text []byte) error {
	kind, err := kindOf(text)
	if err != nil {
		return err
	}
	switch kind {
	case "cpu":
		f.rule = &cpuFamily{}
	case "mem":
		f.rule = &memoryFamily{}
	case "device":
		f.rule = &deviceFamily{}
	case "rule":
		f.rule = &anyRule{}
	case "any", "none":
		f.rule = &plainFamily{}
	default:
		return fmt.Errorf("family of kind %q", kind)
	}
	return json.Unmarshal(text, f.rule)
}

// kindOf finds it at once where it comes first, as it does but in questions that were made small.
func kindOf(text []byte) (string, error) {
	var of struct {
		Kind string `json:"kind"`
	}
	if rest, first := bytes.CutPrefix(text, []byte(`{"kind":"`)); first {
		kind, _, _ := bytes.Cut(rest, []byte(`"`))
		return string(kind), nil
	}
	err := json.Unmarshal(text, &of)
	return of.Kind, err
}

// nodeSet has the bit of each node's id.
type nodeSet uint64

func nodeSetOf(ids ...int) (s nodeSet) {
	for _, id := range ids {
		s |= 1 << id
	}
	return s
}

func (s nodeSet) has(id int) bool       { return s>>id&1 != 0 }
func (s nodeSet) within(o nodeSet) bool { return s&^o == 0 }
func (s nodeSet) count() int            { return bits.OnesCount64(uint64(s)) }

func (s nodeSet) list() []int {
	ids := make([]int, 0, s.count())
	for rest := uint64(s); rest != 0; rest &= rest - 1 {
		ids = append(ids, bits.TrailingZeros64(rest))
	}
	return ids
}

// subsets are all sets of the nodes but the empty one. Providers go through them by size, which
// makes no difference to a merge.
func (s nodeSet) subsets(f func(nodeSet)) {
	for sub := s & -s; sub != 0; sub = (sub - s) & s {
		f(sub)
	}
}

// row has an amount for each node, by its id.
type row [bitsOfMask]int

func rowOf(amounts map[int]int) (r row) {
	for id, amount := range amounts {
		r[id] = amount
	}
	return r
}

func (r *row) sum(over nodeSet) (all int) {
	for rest := uint64(over); rest != 0; rest &= rest - 1 {
		all += r[bits.TrailingZeros64(rest)]
	}
	return all
}

// sockets that each node has CPUs of; a node has one unless sockets cross it.
type sockets map[int][]int

func (s sockets) touched(mask nodeSet) int {
	var all nodeSet
	for _, node := range mask.list() {
		all |= nodeSetOf(s[node]...)
	}
	return all.count()
}

// MarshalJSON writes the socket of a node that has one as a number.
func (s sockets) MarshalJSON() ([]byte, error) {
	of := map[int]any{}
	for node, ids := range s {
		of[node] = ids
		if len(ids) == 1 {
			of[node] = ids[0]
		}
	}
	return json.Marshal(of)
}

func (s *sockets) UnmarshalJSON(text []byte) error {
	var of map[int]json.RawMessage
	if err := json.Unmarshal(text, &of); err != nil {
		return err
	}
	*s = sockets{}
	for node, raw := range of {
		ids := []int{0}
		if json.Unmarshal(raw, &ids[0]) != nil {
			if err := json.Unmarshal(raw, &ids); err != nil {
				return err
			}
		}
		(*s)[node] = ids
	}
	return nil
}

func sum(amounts map[int]int) (all int) {
	for _, amount := range amounts {
		all += amount
	}
	return all
}

// product is how many ways there are to take one hint of each of the provider's lists.
func (f *family) product(machine []int) int {
	all := 1
	for _, list := range f.hints(machine) {
		all *= max(1, len(list))
	}
	return all
}

func keySet[V any](of map[int]V) (s nodeSet) {
	for id := range of {
		s |= 1 << id
	}
	return s
}

// preferring makes hints of the masks.
func preferring(masks []nodeSet, preferred func(nodeSet) bool) []hint {
	list := make([]hint, 0, len(masks))
	for _, mask := range masks {
		list = append(list, hint{mask.list(), preferred(mask)})
	}
	return list
}

type cpuFamily struct {
	Kind     string      `json:"kind"`
	Cap      map[int]int `json:"cap"`
	Avail    map[int]int `json:"avail"`
	Request  int         `json:"request"`
	Reusable map[int]int `json:"reusable,omitempty"`
	Sockets  sockets     `json:"sockets,omitempty"`
}

// hints as in cpumanager/policy_static.go: GetTopologyHints, generateCPUTopologyHints,
// isHintSocketAligned.
func (f *cpuFamily) hints([]int) map[string][]hint {
	if f.Request == 0 {
		return nil
	}
	nodes, capacity, available := keySet(f.Cap), rowOf(f.Cap), rowOf(f.Avail)
	reusable := rowOf(f.Reusable)
	reused, smallest := sum(f.Reusable), nodes.count()
	var masks []nodeSet
	nodes.subsets(func(mask nodeSet) {
		if capacity.sum(mask) >= f.Request {
			smallest = min(smallest, mask.count())
		}
		if reusable.sum(mask) == reused && reused+available.sum(mask) >= f.Request {
			masks = append(masks, mask)
		}
	})
	aligned := 0
	if perSocket := nodes.count() / max(1, f.Sockets.touched(nodes)); f.Sockets != nil && perSocket > 0 {
		aligned = (smallest + perSocket - 1) / perSocket
	}
	return map[string][]hint{"cpu": preferring(masks, func(mask nodeSet) bool {
		return mask.count() == smallest || aligned > 0 && f.Sockets.touched(mask) == aligned
	})}
}

func (f *cpuFamily) with() (what []string) {
	if f.Sockets != nil {
		what = append(what, "sockets")
	}
	if f.Reusable != nil {
		what = append(what, "reusable CPUs")
	}
	return what
}

type memoryCell struct {
	Assign int            `json:"assign"`
	Cells  []int          `json:"cells"`
	Alloc  map[string]int `json:"alloc"`
	Free   map[string]int `json:"free"`
}

type memoryReuse struct {
	Nodes []int          `json:"nodes"`
	Bytes map[string]int `json:"bytes"`
}

type memoryFamily struct {
	Kind     string             `json:"kind"`
	State    map[int]memoryCell `json:"state"`
	Request  map[string]int     `json:"request"`
	Reusable []memoryReuse      `json:"reusable,omitempty"`
}

// memoryRows are what each node has of one type.
type memoryRows struct{ alloc, free row }

func (f *memoryFamily) rows(name string) (r memoryRows) {
	for id, cell := range f.State {
		r.alloc[id], r.free[id] = cell.Alloc[name], cell.Free[name]
	}
	return r
}

func (f *memoryFamily) reusableOn(mask nodeSet, name string) int {
	for _, r := range f.Reusable {
		if nodeSetOf(r.Nodes...) == mask {
			return r.Bytes[name]
		}
	}
	return 0
}

// violates what nodes serve together, as in isAffinityViolatingNUMAAllocations, or is one node of a
// group.
func (f *memoryFamily) violates(mask, busy nodeSet, cells *[bitsOfMask]nodeSet) bool {
	ids := mask.list()
	if len(ids) == 1 {
		return cells[ids[0]].count() > 1
	}
	return slices.ContainsFunc(ids, func(id int) bool { return busy.has(id) && cells[id] != mask })
}

// hints as in memorymanager/policy_static.go: calculateHints.
func (f *memoryFamily) hints([]int) map[string][]hint {
	var cells [bitsOfMask]nodeSet
	var busy nodeSet
	for id, cell := range f.State {
		cells[id] = nodeSetOf(cell.Cells...)
		if cell.Assign > 0 {
			busy |= 1 << id
		}
	}
	rows := map[string]memoryRows{}
	for name := range f.Request {
		rows[name] = f.rows(name)
	}
	nodes := keySet(f.State)
	smallest := nodes.count()
	var masks []nodeSet
	nodes.subsets(func(mask nodeSet) {
		enough := true
		for name, want := range f.Request {
			r := rows[name]
			if r.alloc.sum(mask) < want {
				return
			}
			enough = enough && r.free.sum(mask)+f.reusableOn(mask, name) >= want
		}
		smallest = min(smallest, mask.count())
		if enough && !f.violates(mask, busy, &cells) {
			masks = append(masks, mask)
		}
	})
	all := map[string][]hint{}
	for name := range f.Request {
		if len(masks) > 0 {
			all[name] = preferring(masks, func(mask nodeSet) bool { return mask.count() == smallest })
		}
	}
	return all
}

func (f *memoryFamily) with() (what []string) {
	groups := false
	for _, cell := range f.State {
		groups = groups || cell.Assign > 0
	}
	if groups {
		what = append(what, "memory groups")
	}
	if f.Reusable != nil {
		what = append(what, "reusable memory")
	}
	return what
}

type deviceFamily struct {
	Kind     string           `json:"kind"`
	All      map[string][]int `json:"all"` // nil: without topology
	Avail    []string         `json:"avail"`
	Request  int              `json:"request"`
	Reusable []string         `json:"reusable,omitempty"`
}

// hints as in devicemanager/topology_hints.go: GetTopologyHints, generateDeviceTopologyHints.
func (f *deviceFamily) hints(machine []int) map[string][]hint {
	const name = "device"
	all, placed, home := nodeSetOf(machine...), false, nodeSet(0)
	for _, nodes := range f.All {
		placed = placed || len(nodes) > 0
		home |= nodeSetOf(nodes...) & all
	}
	usable := slices.Clone(f.Avail)
	for _, id := range f.Reusable {
		if !slices.Contains(usable, id) {
			usable = append(usable, id)
		}
	}
	switch {
	case !placed:
		return map[string][]hint{name: nil}
	case len(usable) < f.Request:
		return map[string][]hint{name: {}}
	case home == 0:
		home = all
	}
	smallest := home.count()
	var masks, registered, available, reusable []nodeSet
	for _, nodes := range f.All {
		registered = append(registered, nodeSetOf(nodes...))
	}
	for _, id := range f.Avail {
		available = append(available, nodeSetOf(f.All[id]...))
	}
	for _, id := range f.Reusable {
		if f.All[id] != nil {
			reusable = append(reusable, nodeSetOf(f.All[id]...))
		}
	}
	home.subsets(func(mask nodeSet) {
		if touching(mask, registered) >= f.Request {
			smallest = min(smallest, mask.count())
		}
		again := touching(mask, reusable)
		if again == len(reusable) && again+touching(mask, available) >= f.Request {
			masks = append(masks, mask)
		}
	})
	return map[string][]hint{name: preferring(masks, func(mask nodeSet) bool { return mask.count() == smallest })}
}

// touching is how many of them lie on one of the mask's nodes.
func touching(mask nodeSet, devices []nodeSet) (count int) {
	for _, nodes := range devices {
		if nodes&mask != 0 {
			count++
		}
	}
	return count
}

func (f *deviceFamily) with() (what []string) {
	wide := false
	for _, nodes := range f.All {
		wide = wide || len(nodes) > 1
	}
	if wide {
		what = append(what, "devices on several nodes")
	}
	if f.Reusable != nil {
		what = append(what, "reusable devices")
	}
	return what
}

type ruleCover struct {
	Nodes []int `json:"nodes"`
	Count int   `json:"count"`
}

type ruleDemand struct {
	Weights map[int]int `json:"weights,omitempty"`
	Covers  []ruleCover `json:"covers,omitempty"`
	Base    int         `json:"base,omitempty"`
	Need    int         `json:"need"`
}

// anyRule is numafit's own way to tell hints: what a rule says, said once more.
type anyRule struct {
	Kind             string       `json:"kind"`
	Ground           []int        `json:"ground"`
	Required         []int        `json:"required,omitempty"`
	Demands          []ruleDemand `json:"demands,omitempty"`
	Extra            [][]int      `json:"extra,omitempty"`
	PreferredSize    int          `json:"preferred_size"`
	PreferredSockets int          `json:"preferred_sockets,omitempty"`
	Sockets          sockets      `json:"sockets,omitempty"`
}

func (d *ruleDemand) brings(weights *row, mask nodeSet) int {
	have := d.Base + weights.sum(mask)
	for _, c := range d.Covers {
		if nodeSetOf(c.Nodes...)&mask != 0 {
			have += c.Count
		}
	}
	return have
}

func (f *anyRule) hints(machine []int) map[string][]hint {
	ground, required := nodeSetOf(f.Ground...), nodeSetOf(f.Required...)
	var weights []row
	for _, d := range f.Demands {
		weights = append(weights, rowOf(d.Weights))
	}
	var masks []nodeSet
	nodeSetOf(machine...).subsets(func(mask nodeSet) {
		listed := mask.within(ground) && required.within(mask)
		for i := range f.Demands {
			listed = listed && f.Demands[i].brings(&weights[i], mask) >= f.Demands[i].Need
		}
		if listed || slices.ContainsFunc(f.Extra, func(ids []int) bool { return nodeSetOf(ids...) == mask }) {
			masks = append(masks, mask)
		}
	})
	return map[string][]hint{"rule": preferring(masks, func(mask nodeSet) bool {
		return mask.count() == f.PreferredSize ||
			f.PreferredSockets > 0 && f.Sockets.touched(mask) == f.PreferredSockets
	})}
}

func (f *anyRule) with() (what []string) {
	if f.Sockets != nil {
		what = append(what, "sockets")
	}
	if f.Required != nil {
		what = append(what, "required nodes")
	}
	if f.Extra != nil {
		what = append(what, "extra masks")
	}
	if slices.ContainsFunc(f.Demands, func(d ruleDemand) bool { return d.Covers != nil }) {
		what = append(what, "covers")
	}
	return what
}

// plainFamily is of the kind any or none.
type plainFamily struct {
	Kind string `json:"kind"`
}

func (f *plainFamily) hints([]int) map[string][]hint {
	if f.Kind == "any" {
		return map[string][]hint{"plain": nil}
	}
	return map[string][]hint{"plain": {}}
}

func (f *plainFamily) with() []string { return []string{f.Kind} }
