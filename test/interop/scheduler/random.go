package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// random is the only source of chance of a case: seed and number make it, so that a case can be
// had again alone.
type random struct{ *rand.Rand }

func caseRandom(seed uint64, f *form, number int) *random {
	const eachForm = 1 << 40 // more than any run has cases
	return &random{rand.New(rand.NewPCG(seed, uint64(f.number)*eachForm+uint64(number)))}
}

func (r *random) chance(percent int) bool { return r.IntN(100) < percent }

// between includes both ends.
func (r *random) between(low, high int) int { return low + r.IntN(high-low+1) }

func (r *random) between64(low, high int64) int64 { return low + r.Int64N(high-low+1) }

func pick[T any](r *random, from ...T) T { return from[r.IntN(len(from))] }

// some takes count of from, in from's order.
func some[T any](r *random, from []T, count int) []T {
	out := make([]T, 0, count)
	for i, x := range from {
		if r.IntN(len(from)-i) < count-len(out) {
			out = append(out, x)
		}
	}
	return out
}

const (
	kilo = 1000
	mega = kilo * kilo
	kibi = 1 << 10
	mebi = 1 << 20
	gibi = 1 << 30
)

// cores writes thousandths of a CPU in one of the ways there are.
func (r *random) cores(milli int64) any {
	whole := milli / kilo
	switch {
	case milli%kilo == 0 && r.chance(25):
		return whole
	case milli%kilo == 0 && r.chance(80):
		return fmt.Sprint(whole)
	case milli%kilo == 0 && r.chance(10):
		return fmt.Sprintf("%d.0", whole)
	case milli%kilo != 0 && r.chance(10):
		return json.Number(fmt.Sprintf("%d.%03d", whole, milli%kilo))
	case milli%kilo != 0 && r.chance(20):
		return fmt.Sprintf("%d.%03d", whole, milli%kilo)
	default:
		return fmt.Sprintf("%dm", milli)
	}
}

// bytes writes an amount in one of the ways there are, some of which Kubernetes keeps as decimals.
func (r *random) bytes(n int64) any {
	switch {
	case n%gibi == 0 && r.chance(50):
		return fmt.Sprintf("%dGi", n/gibi)
	case n%(gibi/2) == 0 && r.chance(25):
		return fmt.Sprintf("%d.5Gi", n/gibi)
	case n%mebi == 0 && r.chance(70):
		return fmt.Sprintf("%dMi", n/mebi)
	case n%kibi == 0 && r.chance(20):
		return fmt.Sprintf("%dKi", n/kibi)
	case n%mega == 0 && r.chance(80):
		return fmt.Sprintf("%dM", n/mega)
	case n > 0 && r.chance(2):
		return fmt.Sprintf("%dm", n*kilo-r.Int64N(kilo))
	case r.chance(3):
		return fmt.Sprintf("%de0", n)
	case r.chance(30):
		return n
	}
	return fmt.Sprint(n)
}

func (r *random) count(n int64) any {
	if r.chance(20) {
		return n
	}
	return fmt.Sprint(n)
}

// amountOf writes n of a resource: thousandths of CPUs, bytes, or pieces.
func (r *random) amountOf(name string, n int64) any {
	switch unitOf(name) {
	case unitCores:
		return r.cores(n)
	case unitBytes:
		return r.bytes(n)
	}
	return r.count(n)
}

type unit int

const (
	unitPieces unit = iota
	unitCores
	unitBytes
)

func unitOf(resource string) unit {
	switch {
	case resource == "cpu":
		return unitCores
	case resource == "memory", resource == "ephemeral-storage", resource == "storage",
		len(resource) > len(hugePages) && resource[:len(hugePages)] == hugePages:
		return unitBytes
	}
	return unitPieces
}

const hugePages = "hugepages-"
