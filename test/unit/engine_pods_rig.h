#ifndef ENGINE_PODS_RIG_H
#define ENGINE_PODS_RIG_H

#include <numafit/engine.h>

#include <numafit/text.h>

#include "core_pods.h"

/* Pods for test_engine_pods*.c. */

static struct guest *shared_guest(struct world *w, unsigned i)
{
	struct guest *p = guest(w, i, QOS_BURSTABLE);

	add(p, CONTAINER_APP, 1, 0);
	assert_true(run_pod(w, p, false).admit);
	assert_true(start(w, p, 0).admit);
	return p;
}

/* An init container, a sidecar and two app containers. */
static struct guest *web(struct world *w, unsigned i)
{
	struct guest *p = guest(w, i, QOS_GUARANTEED);

	add(p, CONTAINER_INIT, 4, 20);
	add(p, CONTAINER_SIDECAR, 1, 1);
	add(p, CONTAINER_APP, 3, 10);
	add(p, CONTAINER_APP, 2, 5);
	return p;
}

#endif
