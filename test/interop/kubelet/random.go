package main

import "math/rand/v2"

// random is the only source of chance of a case: seed and number make it, so that a case can be
// had again alone.
type random struct{ *rand.Rand }

func caseRandom(seed uint64, f *form, number int) *random {
	const eachForm = 1 << 40 // more than any run has cases
	return &random{rand.New(rand.NewPCG(seed, uint64(f.key[0])*eachForm+uint64(number)))}
}

func (r *random) chance(percent int) bool { return r.IntN(100) < percent }

// between includes both ends.
func (r *random) between(low, high int) int { return low + r.IntN(high-low+1) }

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
