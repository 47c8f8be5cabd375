package main

import (
	"maps"
	"slices"
)

// object is an object of JSON.
type object = map[string]any

type list = []any

var weighable = slices.Concat([]string{"cpu", "memory", "ephemeral-storage", hugePages + "2Mi",
	"example.com/unknown"}, devices)

// weights of some resources: by a number that high gives.
func (r *random) weights(high func() int64) (out list) {
	names := []string{"cpu", "memory"}
	if r.chance(30) {
		names = nil
	}
	for _, name := range weighable {
		if !slices.Contains(names, name) && r.chance(15) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = []string{pick(r, weighable...)}
	}
	for _, name := range names {
		out = append(out, object{"name": name, "weight": high()})
	}
	return out
}

func (r *random) upTo(high int64) func() int64 { return func() int64 { return r.between64(1, high) } }

func one() int64 { return 1 }

func (r *random) matchArgs(strategy string) object {
	s := object{"type": strategy}
	if r.chance(60) {
		s["resources"] = r.weights(func() int64 {
			return pick(r, 1, r.between64(1, 10), r.between64(-1, 1), 1<<20)
		})
	}
	args := object{"scoringStrategy": s}
	if strategy == leastAllocated && r.chance(10) {
		delete(args, "scoringStrategy")
	}
	if r.chance(25) {
		args["cacheResyncPeriodSeconds"] = pick(r, 5, 5, 30, 60, 0, -1)
	}
	if r.chance(12) {
		args["discardReservedNodes"] = r.chance(70)
	}
	if r.chance(15) {
		cache := object{
			"foreignPodsDetect": pick(r, "None", "All", "OnlyExclusiveResources"),
			"resyncMethod":      pick(r, "Autodetect", "All", "OnlyExclusiveResources"),
			"informerMode":      pick(r, "Shared", "Dedicated"),
			"resyncScope":       pick(r, "All", "OnlyResources"),
		}
		for _, key := range some(r, slices.Sorted(maps.Keys(cache)), r.between(0, 3)) {
			delete(cache, key)
		}
		args["cache"] = cache
	}
	return args
}

// shape is a broken line.
func (r *random) shape() (out list) {
	at := int64(0)
	for range r.between(1, 5) {
		if at += r.between64(0, 40); at > 100 {
			break
		}
		out = append(out, object{"utilization": at, "score": r.between64(0, 10)})
		at++
	}
	if len(out) == 0 {
		out = list{object{"utilization": 0, "score": 10}}
	}
	return out
}

func (r *random) fitArgs() object {
	strategy := object{"type": pick(r, leastAllocated, mostAllocated, requestedToCapacityRatio)}
	if strategy["type"] == requestedToCapacityRatio {
		strategy["requestedToCapacityRatio"] = object{"shape": r.shape()}
	}
	if r.chance(80) {
		strategy["resources"] = r.weights(pick(r, one, r.upTo(5), r.upTo(100)))
	}
	args := object{"scoringStrategy": strategy}
	if r.chance(10) && strategy["type"] == leastAllocated {
		delete(args, "scoringStrategy")
	}
	if r.chance(15) {
		args["ignoredResources"] = some(r, devices, r.between(0, 2))
	}
	if r.chance(15) {
		groups := []string{"example.com", "vendor", "intel.com", "amd.com"}
		args["ignoredResourceGroups"] = some(r, groups, r.between(0, 2))
	}
	return args
}

func (r *random) balancedArgs() object {
	if r.chance(15) {
		return object{}
	}
	return object{"resources": r.weights(one)}
}

func (r *random) allocatableArgs() object {
	args := object{}
	if r.chance(80) {
		args["resources"] = r.weights(pick(r, one, r.upTo(100), r.upTo(1<<20)))
	}
	if r.chance(85) {
		args["mode"] = pick(r, "Least", "Most")
	}
	return args
}

// spoil makes one mistake in arguments, or something that looks like one.
func (r *random) spoil(args object) {
	place := any(args)
	for {
		switch at := place.(type) {
		case object:
			if len(at) == 0 || r.chance(25) {
				r.spoilObject(at)
				return
			}
			key := pick(r, slices.Sorted(maps.Keys(at))...)
			if r.chance(40) || isLeaf(at[key]) {
				at[key] = r.nonsense(at[key])
				return
			}
			place = at[key]
		case list:
			if len(at) == 0 {
				return
			}
			i := r.IntN(len(at))
			if r.chance(15) || isLeaf(at[i]) {
				at[i] = r.nonsense(at[i])
				return
			}
			place = at[i]
		default:
			return
		}
	}
}

func isLeaf(v any) bool {
	switch v.(type) {
	case object, list:
		return false
	}
	return true
}

func (r *random) spoilObject(o object) {
	if len(o) > 0 && r.chance(40) {
		delete(o, pick(r, slices.Sorted(maps.Keys(o))...))
		return
	}
	key := pick(r, "weights", "scoringstrategy", "Type", "resource", "mode", "shape", "Weight", "extra")
	o[key] = pick[any](r, 1, "x", true, list{}, object{})
}

func (r *random) nonsense(v any) any {
	switch v.(type) {
	case int64, int:
		return pick[any](r, int64(0), int64(-1), int64(101), int64(11), "7", 1.5, nil, true, int64(1)<<40)
	case string:
		return pick[any](r, "", "Nonsense", "bad/name/here", "_", "example.com/", 7, nil, list{}, "cpu")
	case bool:
		return pick[any](r, "true", 1, nil)
	}
	return pick[any](r, nil, "text", 3, true, list{}, object{}, list{object{}}, list{object{}, object{}})
}
