#include <numafit-sim/trace_yaml.h>

#include <codec/flat_yaml.h>
#include <codec/pod_spec.h>
#include <errno.h>
#include <numafit/quantity.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

enum {
	STRINGS_MAX = 1 << 20,
	CPU_MILLI_MAX = CPUSET_BITS * 1000,
	NODE_ID_NONE = NODE_ID_MAX + 1, /* not given */
	TTL_DEFAULT_S = 120
};

const char trace_yaml_example[] =
	"kubelet:                    # one with device plugins; leave it out, and there is none\n"
	"  topologyManagerPolicy: restricted     # the kubelet's own settings, in its words; default: none\n"
	"  devices:                  # of plugins that are played, too\n"
	"  - {resource: example.com/gpu, node: 0, count: 2}\n"
	"  - {resource: example.com/tpm, node: none, count: 1}  # whose plugin knows no NUMA node\n"
	"steps:\n"
	"- create:                   # a container of a pod\n"
	"    namespace: prod         # default: default\n"
	"    pod: db\n"
	"    container: postgres     # default: main\n"
	"    qos: guaranteed         # or burstable, besteffort\n"
	"    cpu: 8                  # guaranteed: request and limit; burstable: the request\n"
	"    memory: 32Gi            # the same\n"
	"    hugepages-1Gi: 4Gi      # any page size; bytes, as in a pod\n"
	"    devices: [numafit.io/cpu=8, example.com/gpu=1]\n"
	"    hint: {numa: 0-1, mode: require, ttl: 60s}  # what a scheduler has left on the pod\n"
	"    annotations: ['numafit.io/topology-policy=single-numa-node']\n"
	"- create:\n"
	"    pod: db                 # a second container of the pod\n"
	"    namespace: prod\n"
	"    container: agent\n"
	"    kind: sidecar           # or init; default: app\n"
	"    qos: burstable\n"
	"    cpu: 500m\n"
	"- create: {pod: web, qos: besteffort, count: 8}  # so many pods: web-0 to web-7\n"
	"- update:                   # of containers that run\n"
	"    pod: db                 # a pod's name, or that of all pods of a count\n"
	"    container: postgres     # this one alone; default: all of the pod\n"
	"    cpu: 4                  # resized in place\n"
	"    memory: 16Gi\n"
	"- update: {pod: web-3, cpus: 0-7, mems: 0}  # a cpuset that another program sets\n"
	"- stop: {pod: web}          # stop and remove the containers\n"
	"- stop-pod: {pod: db}       # the pod's end is reported, and that of its containers is not\n"
	"- restart-runtime           # numafitd has to connect again, and is synchronized\n"
	"- restart-kubelet           # device plugins have to register again\n"
	"- create: {pod: late, qos: besteffort, unasked: true}  # it starts while numafitd is away\n";

static const char *const op_names[NR_TRACE_OPS] = {
	[TRACE_CREATE] = "create",
	[TRACE_UPDATE] = "update",
	[TRACE_STOP] = "stop",
	[TRACE_STOP_POD] = "stop-pod",
	[TRACE_RESTART_RUNTIME] = "restart-runtime",
	[TRACE_RESTART_KUBELET] = "restart-kubelet",
};

/* Whether it is a word alone, without keys. */
static bool is_bare(enum trace_op op)
{
	return op == TRACE_RESTART_RUNTIME || op == TRACE_RESTART_KUBELET;
}

const char *trace_op_name(enum trace_op op)
{
	return op_names[op];
}

/* The trace as far as it is read. */
struct reader {
	struct trace *t;
	uint64_t step_id;    /* N of the path "steps.N" that the last step came from */
	uint64_t devices_id; /* the same of "kubelet.devices.N" */
};

/* A key of a step: the steps that may have it, and what reads its value to its place in the step.
 */
struct key {
	const char *name;
	unsigned ops; /* bits of enum trace_op */
	size_t at;
	int (*read)(
		struct reader *r, const struct key *k, void *to, const char *value, struct err *e);
	const char *words; /* of an enum: "app, init, sidecar", in its order */
	unsigned first;    /* the value of the first one */
};
enum {
	IN_CREATE = 1 << TRACE_CREATE,
	IN_UPDATE = 1 << TRACE_UPDATE,
	IN_STOP = 1 << TRACE_STOP,
	IN_STOP_POD = 1 << TRACE_STOP_POD
};

static int trace_keep_string(struct reader *r, const char **out, const char *value, struct err *e)
{
	*out = arena_strndup(&r->t->strings, value, strlen(value));
	return *out ? 0 : err_set(e, E2BIG, "the trace's names exceed %d bytes", STRINGS_MAX);
}

static int trace_read_name(
	struct reader *r, const struct key *k, void *to, const char *value, struct err *e)
{
	size_t len = strlen(value);

	(void)k;
	/* k8s.io/apimachinery/pkg/util/validation: IsDNS1123Label */
	if (!len || len > TRACE_NAME_MAX || value[0] == '-' || value[len - 1] == '-' ||
		strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-") != len)
		return err_set(e, EINVAL,
			"\"%.80s\" is not a name: 1 to %d of a-z, 0-9 and inner dashes", value,
			TRACE_NAME_MAX);
	return trace_keep_string(r, to, value, e);
}

static int trace_read_word(
	struct reader *r, const struct key *k, void *to, const char *value, struct err *e)
{
	const char *word = k->words;

	(void)r;
	for (unsigned i = 0; *word; i++) {
		size_t len = strcspn(word, ",");

		if (strlen(value) == len && memcmp(value, word, len) == 0) {
			*(unsigned *)to = k->first + i;
			return 0;
		}
		word += len + strspn(word + len, ", ");
	}
	return err_set(e, EINVAL, "\"%.80s\" is not one of %s", value, k->words);
}

static int trace_read_cpu(
	struct reader *r, const struct key *k, void *to, const char *value, struct err *e)
{
	uint64_t milli;
	int rc = quantity_parse_count(value, QUANTITY_MILLI, &milli, e);

	(void)r, (void)k;
	if (!rc && (milli == 0 || milli > CPU_MILLI_MAX))
		rc = err_set(e, ERANGE, "\"%.80s\" is not within 1m..%d CPUs", value, CPUSET_BITS);
	if (!rc)
		*(uint64_t *)to = milli;
	return rc;
}

static int trace_read_bytes(
	struct reader *r, const struct key *k, void *to, const char *value, struct err *e)
{
	uint64_t bytes;
	int rc = quantity_parse_count(value, QUANTITY_WHOLE, &bytes, e);

	(void)r, (void)k;
	if (!rc && bytes == 0)
		rc = err_set(e, ERANGE, "\"%.80s\" is no memory at all", value);
	if (!rc)
		*(uint64_t *)to = bytes;
	return rc;
}

static int trace_read_count(
	struct reader *r, const struct key *k, void *to, const char *value, struct err *e)
{
	uint64_t count;
	int rc = text_u64(value, strlen(value), TRACE_COUNT_MAX, &count, e);

	(void)r, (void)k;
	if (!rc && !count)
		rc = err_set(e, ERANGE, "0 is not within 1..%d", TRACE_COUNT_MAX);
	if (!rc)
		*(unsigned *)to = (unsigned)count;
	return rc;
}

static int trace_read_unasked(
	struct reader *r, const struct key *k, void *to, const char *value, struct err *e)
{
	(void)r, (void)k;
	return text_bool(value, to, e);
}

/* A kernel list; whether its numbers exist is for the machine that the trace is played on, and for
 * advice they need not. */
static int trace_read_list(
	struct reader *r, const struct key *k, void *to, const char *value, struct err *e)
{
	struct cpuset set;
	int rc = cpuset_parse(&set, value, strlen(value), e);

	(void)k;
	if (rc)
		return rc;
	if (cpuset_empty(&set))
		return err_set(e, EINVAL, "the list is empty");
	return trace_keep_string(r, to, value, e);
}

static int trace_read_ttl(
	struct reader *r, const struct key *k, void *to, const char *value, struct err *e)
{
	size_t len = strlen(value);
	uint64_t seconds;

	(void)r, (void)k;
	if (!len || value[len - 1] != 's')
		return err_set(
			e, EINVAL, "\"%.80s\" is not a number of seconds such as 60s", value);
	int rc = text_u64(value, len - 1, ADVICE_TTL_MAX_S, &seconds, e);
	if (!rc && !seconds)
		rc = err_set(e, ERANGE, "should be 1s at least");
	if (!rc)
		*(unsigned *)to = (unsigned)seconds;
	return rc;
}

static int trace_read_generation(
	struct reader *r, const struct key *k, void *to, const char *value, struct err *e)
{
	(void)r, (void)k;
	return text_u64(value, strlen(value), INT64_MAX, to, e);
}

#define KEY(name_, ops_, member_, read_, ...)                                                      \
	{                                                                                          \
		.name = (name_), .ops = (ops_), .at = offsetof(struct trace_step, member_),        \
		.read = (read_), ##__VA_ARGS__                                                     \
	}
static const struct key keys[] = {
	KEY("namespace", IN_CREATE, ns, trace_read_name),
	KEY("pod", IN_CREATE | IN_UPDATE | IN_STOP | IN_STOP_POD, pod, trace_read_name),
	KEY("container", IN_CREATE | IN_UPDATE | IN_STOP, container, trace_read_name),
	KEY("qos", IN_CREATE, asked.qos, trace_read_word,
		.words = "guaranteed, burstable, besteffort", .first = QOS_GUARANTEED),
	KEY("cpu", IN_CREATE | IN_UPDATE, asked.cpu_milli, trace_read_cpu),
	KEY("memory", IN_CREATE | IN_UPDATE, asked.memory_bytes, trace_read_bytes),
	KEY("kind", IN_CREATE, kind, trace_read_word, .words = "app, init, sidecar",
		.first = CONTAINER_APP),
	KEY("count", IN_CREATE, count, trace_read_count),
	KEY("unasked", IN_CREATE, unasked, trace_read_unasked),
	KEY("cpus", IN_CREATE | IN_UPDATE, cpus, trace_read_list),
	KEY("mems", IN_CREATE | IN_UPDATE, mems, trace_read_list),
	KEY("hint.numa", IN_CREATE, advice.numa, trace_read_list),
	KEY("hint.mode", IN_CREATE, advice.mode, trace_read_word, .words = "prefer, require",
		.first = ADVICE_PREFER),
	KEY("hint.ttl", IN_CREATE, advice.ttl_s, trace_read_ttl),
	KEY("hint.gen", IN_CREATE, advice.generation, trace_read_generation),
	/* what can be wrong with the advice itself, not with what it asks for */
	KEY("hint.wrong", IN_CREATE, advice.wrong, trace_read_word,
		.words = "format, version, uid, node, clock, expired",
		.first = ADVICE_REJECTED_FORMAT),
};
enum { NR_KEYS = sizeof keys / sizeof *keys };

static int trace_read_hugepages(
	struct reader *r, struct trace_step *s, const char *size, const char *value, struct err *e)
{
	struct memory_ask ask = {.page_bytes = page_bytes_from_name(size)};

	if (!ask.page_bytes)
		return err_set(e, EINVAL, "\"%.40s\" is not a page size such as 2Mi", size);
	if (s->asked.nr_hugepages == sizeof s->asked.hugepages / sizeof *s->asked.hugepages)
		return err_set(e, E2BIG, "more than %u sizes of huge pages", s->asked.nr_hugepages);
	int rc = trace_read_bytes(r, NULL, &ask.bytes, value, e);

	if (rc)
		return rc;
	if (ask.bytes % ask.page_bytes)
		return err_set(e, EINVAL, "%s is not a whole number of pages", value);
	s->asked.hugepages[s->asked.nr_hugepages++] = ask;
	return 0;
}

/* Devices */

static int trace_read_device_count(uint64_t *out, const char *value, struct err *e)
{
	int rc = text_u64(value, strlen(value), CPUSET_BITS, out, e);

	return rc || *out ? rc : err_set(e, ERANGE, "0 is not within 1..%d", CPUSET_BITS);
}

static int trace_read_resource(
	struct reader *r, const char **out, const char *name, size_t len, struct err *e)
{
	*out = arena_strndup(&r->t->strings, name, len);
	if (!*out)
		return err_set(e, E2BIG, "the trace's names exceed %d bytes", STRINGS_MAX);
	if (!resource_is_extended(*out))
		return err_set(e, EINVAL,
			"\"%.80s\" is not a device plugin's resource such as example.com/gpu",
			*out);
	return 0;
}

/* "example.com/gpu=2" */
static int trace_read_device_ask(
	struct reader *r, struct trace_step *s, const char *value, struct err *e)
{
	struct trace_devices ask = {0};
	size_t len = strcspn(value, "=");

	if (!value[len])
		return err_set(e, EINVAL, "\"%.80s\" is not RESOURCE=COUNT", value);
	int rc = trace_read_resource(r, &ask.resource, value, len, e);
	if (!rc)
		rc = trace_read_device_count(&ask.count, value + len + 1, e);
	for (unsigned i = 0; i < s->nr_devices && !rc; i++)
		if (text_equal(s->device[i].resource, ask.resource))
			rc = err_set(e, EINVAL, "%.80s is there twice", ask.resource);
	if (!rc && s->nr_devices == POD_DEVICES_MAX)
		rc = err_set(e, E2BIG, "more than %d resources", POD_DEVICES_MAX);
	if (!rc)
		s->device[s->nr_devices++] = ask;
	return rc;
}

/* "numafit.io/numa-hint={...}" */
static int trace_read_annotation(
	struct reader *r, struct trace_step *s, const char *value, struct err *e)
{
	size_t len = strcspn(value, "=");
	struct key_value *a = &s->annotation[s->nr_annotations];

	if (!len || !value[len])
		return err_set(e, EINVAL, "\"%.80s\" is not KEY=VALUE", value);
	if (s->nr_annotations == TRACE_ANNOTATIONS_MAX)
		return err_set(e, E2BIG, "more than %d annotations", TRACE_ANNOTATIONS_MAX);
	a->key = arena_strndup(&r->t->strings, value, len);
	if (!a->key)
		return err_set(e, E2BIG, "the trace's names exceed %d bytes", STRINGS_MAX);
	for (unsigned i = 0; i < s->nr_annotations; i++)
		if (text_equal(s->annotation[i].key, a->key))
			return err_set(e, EINVAL, "%.80s is there twice", a->key);
	s->nr_annotations++;
	return trace_keep_string(r, &a->value, value + len + 1, e);
}

/* Whether path is prefix and more; *rest is what follows it. */
static bool has_prefix(const char *path, const char *prefix, const char **rest)
{
	size_t len = strlen(prefix);

	*rest = path + len;
	return strncmp(path, prefix, len) == 0;
}

static int trace_read_key(
	struct reader *r, struct trace_step *s, const char *name, const char *value, struct err *e)
{
	const char *rest;

	if (s->op == TRACE_CREATE && has_prefix(name, "hugepages-", &rest))
		return trace_read_hugepages(r, s, rest, value, e);
	if (s->op == TRACE_CREATE && has_prefix(name, "devices.", &rest))
		return trace_read_device_ask(r, s, value, e);
	if (s->op == TRACE_CREATE && has_prefix(name, "annotations.", &rest))
		return trace_read_annotation(r, s, value, e);
	bool hint = s->op == TRACE_CREATE && has_prefix(name, "hint.", &rest);
	if (hint && !s->advice.ttl_s)
		s->advice = (struct trace_advice){.mode = ADVICE_PREFER, .ttl_s = TTL_DEFAULT_S};
	for (unsigned i = 0; i < NR_KEYS; i++)
		if (text_equal(keys[i].name, name) && keys[i].ops & 1u << s->op)
			return keys[i].read(r, &keys[i], (char *)s + keys[i].at, value, e);
	if (hint)
		return err_set(e, EINVAL, "unknown key; a hint has numa, mode, ttl, gen, wrong");

	char known[200];
	struct text list;

	text_init(&list, known, sizeof known);
	for (unsigned i = 0; i < NR_KEYS; i++)
		if (keys[i].ops & 1u << s->op && !strchr(keys[i].name, '.'))
			text_add(&list, "%s%s", list.len ? ", " : "", keys[i].name);
	return err_set(e, EINVAL, "unknown key; %s has %s%s", op_names[s->op], known,
		s->op == TRACE_CREATE ? ", hugepages-SIZE, devices: [RESOURCE=COUNT], "
					"annotations: [KEY=VALUE], hint: {numa: NODES}"
				      : "");
}

static int check_create(struct trace_step *s, struct err *e)
{
	if (s->asked.qos == NR_QOS)
		return err_set(e, EINVAL, "qos is missing");
	if (s->asked.qos == QOS_GUARANTEED && !(s->asked.cpu_milli && s->asked.memory_bytes))
		return err_set(e, EINVAL, "qos guaranteed needs cpu and memory");
	if (s->asked.qos == QOS_BURSTABLE && !(s->asked.cpu_milli || s->asked.memory_bytes))
		return err_set(e, EINVAL, "qos burstable needs cpu or memory");
	if (s->asked.qos == QOS_BEST_EFFORT &&
		(s->asked.cpu_milli || s->asked.memory_bytes || s->asked.nr_hugepages))
		return err_set(e, EINVAL, "qos besteffort has neither cpu, memory nor huge pages");
	if (s->count && s->cpus)
		return err_set(e, EINVAL, "cpus are of one container, count makes many");
	if (s->unasked && s->nr_devices)
		return err_set(e, EINVAL, "unasked containers come without devices");
	if (s->advice.ttl_s && !s->advice.numa)
		return err_set(e, EINVAL, "hint.numa is missing");
	if (!s->ns)
		s->ns = "default";
	if (!s->container)
		s->container = "main";
	return 0;
}

/* Whether the pods that *create makes include one of that name, or are meant by it together. */
static bool creates(const struct trace_step *create, const char *pod)
{
	size_t len = strlen(create->pod);
	uint64_t replica;

	if (text_equal(create->pod, pod))
		return true;
	return create->count && strncmp(pod, create->pod, len) == 0 && pod[len] == '-' &&
	       text_u64(pod + len + 1, strlen(pod + len + 1), create->count - 1, &replica, NULL) ==
		       0;
}

/* The last step is complete: check what needs the whole of it. */
static int finish_step(struct trace *t, struct err *e)
{
	struct trace_step *s = t->nr ? &t->at[t->nr - 1] : NULL;
	bool created = false; /* an earlier step creates what this one names */
	int rc = 0;

	if (!s || is_bare(s->op))
		return 0;
	for (const struct trace_step *c = t->at; c < s && s->pod && !created; c++)
		created = c->op == TRACE_CREATE && creates(c, s->pod) &&
			  (!s->container || text_equal(s->container, c->container));
	if (!s->pod)
		rc = err_set(e, EINVAL, "pod is missing");
	else if (s->op == TRACE_CREATE)
		rc = check_create(s, e);
	else if (!created)
		rc = err_set(e, EINVAL, "no step before creates pod %s%s%s", s->pod,
			s->container ? " with container " : "", s->container ? s->container : "");
	else if (s->op == TRACE_UPDATE &&
		 !(s->cpus || s->mems || s->asked.cpu_milli || s->asked.memory_bytes))
		rc = err_set(e, EINVAL, "nothing to update: cpus, mems, cpu or memory");
	return rc ? err_add(e, rc, "line %u: %s", s->line, op_names[s->op]) : 0;
}

static int op_from_name(const char *name, size_t len)
{
	for (int op = 0; op < NR_TRACE_OPS; op++)
		if (strlen(op_names[op]) == len && memcmp(op_names[op], name, len) == 0)
			return op;
	return -1;
}

static int trace_begin_step(
	struct reader *r, uint64_t id, enum trace_op op, unsigned line, struct err *e)
{
	int rc = finish_step(r->t, e);

	if (rc)
		return rc;
	if (r->t->nr == TRACE_STEPS_MAX)
		return err_set(e, E2BIG, "line %u: more than %d steps", line, TRACE_STEPS_MAX);
	struct trace_step *s = vec_push(r->t);

	s->op = op;
	s->asked.qos = NR_QOS;
	s->line = line;
	r->step_id = id;
	return 0;
}

/* The kubelet */

/* "N.KEY" of kubelet.devices. */
static int trace_read_devices(struct reader *r, const char *path, const char *value, struct err *e)
{
	size_t digits = strcspn(path, ".");
	const char *key = path + digits + !!path[digits];
	uint64_t id, node;

	if (text_u64(path, digits, UINT32_MAX, &id, NULL) < 0)
		return err_set(e, EINVAL, "a list of {resource, node, count} is expected");
	if (r->t->devices.nr == TRACE_DEVICES_MAX)
		return err_set(e, E2BIG, "more than %d lines of devices", TRACE_DEVICES_MAX);
	if (!r->t->devices.nr || r->devices_id != id)
		vec_push(&r->t->devices)->node_id = NODE_ID_NONE;
	r->devices_id = id;
	struct trace_devices *d = &r->t->devices.at[r->t->devices.nr - 1];
	if (text_equal(key, "resource"))
		return trace_read_resource(r, &d->resource, value, strlen(value), e);
	if (text_equal(key, "count"))
		return trace_read_device_count(&d->count, value, e);
	if (!text_equal(key, "node"))
		return err_set(e, EINVAL, "unknown key; devices have resource, node, count");
	const bool none = text_equal(value, "none");
	int rc = none ? 0 : text_u64(value, strlen(value), NODE_ID_MAX, &node, e);
	if (!rc)
		d->node_id = none ? TRACE_WITHOUT_NODE : (unsigned)node;
	return rc ? err_add(e, rc, "a NUMA node, or none") : 0;
}

static int trace_read_kubelet(struct reader *r, const char *key, const char *value, struct err *e)
{
	const char *rest;

	r->t->has_kubelet = true;
	if (has_prefix(key, "devices.", &rest))
		return trace_read_devices(r, rest, value, e);
	if (has_prefix(key, "topologyManager", &rest))
		return settings_set(&r->t->kubelet, key, value, e);
	return err_set(e, EINVAL,
		"unknown key; a kubelet has topologyManagerPolicy, topologyManagerScope, "
		"topologyManagerPolicyOptions, devices");
}

static int check_kubelet(const struct trace *t, struct err *e)
{
	for (size_t i = 0; i < t->devices.nr; i++) {
		const struct trace_devices *d = &t->devices.at[i];

		if (!d->resource || !d->count || d->node_id == NODE_ID_NONE)
			return err_set(e, EINVAL,
				"kubelet.devices.%zu: resource, node and count are needed", i);
	}
	for (size_t i = 0; i < t->nr && !t->has_kubelet; i++)
		if (t->at[i].nr_devices || t->at[i].kind != CONTAINER_APP ||
			t->at[i].op == TRACE_RESTART_KUBELET)
			return err_set(e, EINVAL,
				"line %u: devices, kinds of containers and restart-kubelet need a "
				"kubelet: \"kubelet: {topologyManagerPolicy: none}\" at least",
				t->at[i].line);
	return 0;
}

/* "steps.N.OP.KEY", or "steps.N" with the operation as the value; or "kubelet.KEY". */
static int trace_read_scalar(
	void *ctx, const char *path, const char *value, unsigned line, struct err *e)
{
	struct reader *r = ctx;
	const char *text = value ? value : "", *number;
	uint64_t id;

	if (has_prefix(path, "kubelet.", &number)) {
		int rc = trace_read_kubelet(r, number, text, e);

		return rc ? err_add(e, rc, "line %u: %.80s", line, path) : 0;
	}
	if (text_equal(path, "steps"))
		return err_set(e, EINVAL, "line %u: steps: a list of steps is expected", line);
	if (!has_prefix(path, "steps.", &number))
		return err_set(e, EINVAL,
			"line %u: %.80s: unknown key; a trace has steps, and may have a kubelet",
			line, path);

	size_t digits = strcspn(number, ".");
	bool bare = !number[digits];
	const char *word = bare ? text : number + digits + 1;
	size_t word_len = bare ? strlen(word) : strcspn(word, ".");
	int op = op_from_name(word, word_len);

	if (text_u64(number, digits, UINT32_MAX, &id, NULL) < 0)
		return err_set(e, EINVAL, "line %u: steps: a list of steps is expected", line);
	if (op < 0 || bare != is_bare((enum trace_op)op))
		return err_set(e, EINVAL,
			"line %u: steps.%u: \"%.*s\" is not a step; one of \"create:\", "
			"\"update:\", \"stop:\", \"stop-pod:\" with keys below, or "
			"\"restart-runtime\", \"restart-kubelet\"",
			line, (unsigned)id,
			(int)(word_len < TRACE_NAME_MAX ? word_len : TRACE_NAME_MAX), word);
	if (!r->t->nr || r->step_id != id) {
		int rc = trace_begin_step(r, id, (enum trace_op)op, line, e);

		if (rc)
			return rc;
	}
	struct trace_step *s = &r->t->at[r->t->nr - 1];

	if (s->op != (enum trace_op)op)
		return err_set(e, EINVAL, "line %u: steps.%u: both %s and %s in one step", line,
			(unsigned)id, op_names[s->op], op_names[op]);
	if (bare)
		return 0;
	if (!word[word_len])
		return err_set(e, EINVAL, "line %u: %s: keys such as pod are expected", line, path);
	int rc = trace_read_key(r, s, word + word_len + 1, text, e);

	return rc ? err_add(e, rc, "line %u: %.80s", line, path) : 0;
}

int trace_yaml_read(struct trace *t, const char *text, size_t len, struct err *e)
{
	struct reader r = {.t = t};

	*t = (struct trace){0};
	arena_init(&t->strings, STRINGS_MAX);
	settings_init(&t->kubelet);
	t->kubelet.topology_policy = POLICY_NONE; /* as a kubelet's */
	int rc = flat_yaml_read(text, len, trace_read_scalar, &r, NULL, e);

	if (!rc)
		rc = finish_step(t, e);
	if (!rc)
		rc = check_kubelet(t, e);
	if (!rc && !t->nr)
		rc = err_set(e, EINVAL, "the trace has no steps");
	if (rc)
		trace_fini(t);
	return rc;
}

void trace_fini(struct trace *t)
{
	vec_fini(&t->devices);
	arena_fini(&t->strings);
	vec_fini(t);
}
