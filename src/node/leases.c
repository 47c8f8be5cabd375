#include <numafit/leases.h>

#include <numafit/text.h>
#include <numafit/vec.h>

#include <assert.h>
#include <errno.h>

#define VERSION "v1:"

struct user {
	struct lease_user is;
	bool runs;
	unsigned nr_tokens;
};

/* A leased token. */
struct leased {
	struct token token;
	bool shown;
	uint64_t lease; /* 0: its name is not known */
	int64_t since_ms;
	struct user *user; /* who had it last, or NULL */
};

struct leased_vec {
	VEC(struct leased);
};
struct user_vec {
	VEC(struct user *);
};

struct leases {
	const struct topo *t;
	const struct settings *s;
	uint64_t last;            /* name that was given out */
	struct leased_vec tokens; /* ascending, each once */
	struct user_vec users;
};

const char *lease_annotation(
	uint64_t name, const struct tokenset *tokens, const struct node_ids *ids, char *buf)
{
	char list[TOKENSET_TEXT_MAX];
	struct text to;

	text_init(&to, buf, LEASE_TEXT_MAX);
	text_add(&to, VERSION "%llu:%s", (unsigned long long)name,
		tokenset_format(tokens, ids, list, sizeof list));
	return buf;
}

int lease_user_of(const struct request *req, struct lease_user *out, struct err *e)
{
	struct lease_user u = {0};

	if (text_equal(req->container_id, ""))
		return err_set(e, EINVAL, "a container without an id");
	if (!text_copy(u.container_id, sizeof u.container_id, req->container_id) ||
		!text_copy(u.container_name, sizeof u.container_name, req->ask.name) ||
		!text_copy(u.pod_uid, sizeof u.pod_uid, req->pod.uid) ||
		!text_copy(u.pod_ns, sizeof u.pod_ns, req->pod.ns) ||
		!text_copy(u.pod_name, sizeof u.pod_name, req->pod.name))
		return err_set(e, ENAMETOOLONG,
			"container %.63s: a name is longer than Kubernetes allows",
			req->container_id);
	*out = u;
	return 0;
}

struct leases *leases_new(const struct topo *t, const struct settings *s)
{
	struct leases *l = xcalloc(1, sizeof *l);

	l->t = t;
	l->s = s;
	return l;
}

void leases_free(struct leases *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->users.nr; i++)
		free(l->users.at[i]);
	vec_fini(&l->users);
	vec_fini(&l->tokens);
	free(l);
}

void leases_set_topo(struct leases *l, const struct topo *t)
{
	assert(t->ids.nr == l->t->ids.nr);
	l->t = t;
}

static bool comes_before(struct token a, struct token b)
{
	return a.node < b.node || (a.node == b.node && a.number < b.number);
}

/* Where the token stands, or would stand. */
static size_t place_of_token(const struct leases *l, struct token k)
{
	size_t lo = 0, hi = l->tokens.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (comes_before(l->tokens.at[mid].token, k))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct leased *find_leased(const struct leases *l, struct token k)
{
	size_t i = place_of_token(l, k);

	return i < l->tokens.nr && !comes_before(k, l->tokens.at[i].token) ? &l->tokens.at[i]
									   : NULL;
}

static bool user_runs(const struct leased *x)
{
	return x->user && x->user->runs;
}

/* The token's user is that one from now on, or (NULL) nobody. */
static void set_user(struct leases *l, struct leased *x, struct user *u)
{
	struct user *before = x->user;

	if (u)
		u->nr_tokens++;
	x->user = u;
	if (!before || --before->nr_tokens)
		return;
	size_t i = 0;
	while (l->users.at[i] != before)
		i++;
	vec_remove(&l->users, i);
	free(before);
}

static struct user *find_user(const struct leases *l, const char *container_id)
{
	for (size_t i = 0; i < l->users.nr; i++)
		if (text_equal(l->users.at[i]->is.container_id, container_id))
			return l->users.at[i];
	return NULL;
}

static struct user *add_user(struct leases *l, const struct lease_user *is)
{
	struct user **slot = vec_push(&l->users);

	*slot = xcalloc(1, sizeof **slot);
	(*slot)->is = *is;
	return *slot;
}

int leases_may_adopt(const struct leases *l, const struct tokenset *shown, struct err *e)
{
	size_t nr = l->tokens.nr;

	if (!nodeset_within(shown->nodes, l->t->nodes))
		return err_set(e, ENOENT, "CPU tokens of a NUMA node that is not there");
	tokenset_each (k, shown)
		nr += !find_leased(l, k);
	return nr > LEASES_TOKENS_MAX
		       ? err_set(e, ENOSPC, "more than %d CPU tokens are leased", LEASES_TOKENS_MAX)
		       : 0;
}

static struct leased *find_or_add(struct leases *l, struct token k)
{
	struct leased *x = find_leased(l, k);

	if (!x) {
		x = vec_insert(&l->tokens, place_of_token(l, k));
		x->token = k;
	}
	return x;
}

uint64_t leases_latest(const struct leases *l, const struct tokenset *tokens)
{
	uint64_t latest = 0;

	tokenset_each (k, tokens) {
		const struct leased *x = find_leased(l, k);

		if (x && x->lease > latest)
			latest = x->lease;
	}
	return latest;
}

int leases_may_allocate(const struct leases *l, int64_t from, const struct tokenset *tokens,
	uint64_t *name, struct err *e)
{
	int rc = leases_may_adopt(l, tokens, e);
	char id[TOKEN_ID_MAX];

	if (rc)
		return rc;
	if (!tokenset_count(tokens))
		return err_set(e, EINVAL, "no CPU tokens are asked for");
	tokenset_each (k, tokens)
		if (k.number >= tokens_on(l->t, l->s, k.node) && !find_leased(l, k))
			return err_set(e, ENOENT, "there is no CPU token %s",
				tokens_format(&l->t->ids, k, id, sizeof id));
	/* one that no lease has had; by the time, so that it is none from before a lost journal */
	*name = from > 0 ? (uint64_t)from : 0;
	if (*name <= l->last)
		*name = l->last + 1;
	return 0;
}

uint64_t leases_allocate(
	struct leases *l, int64_t now_ms, const struct tokenset *tokens, uint64_t name)
{
	tokenset_each (k, tokens) {
		struct leased *x = find_or_add(l, k);

		if (!x->lease) {
			x->lease = name;
			l->last = name > l->last ? name : l->last;
		}
		if (!user_runs(x))
			set_user(l, x, NULL); /* whose it is now is not known */
		x->since_ms = now_ms;
		x->shown = false;
	}
	return leases_latest(l, tokens);
}

struct tokenset leases_news(const struct leases *l, const struct tokenset *shown)
{
	struct tokenset news = {0};

	tokenset_each (k, shown) {
		const struct leased *x = find_leased(l, k);

		if (!x || !x->shown)
			tokenset_add(&news, k);
	}
	return news;
}

int leases_adopt(struct leases *l, int64_t now_ms, const struct tokenset *shown, struct err *e)
{
	int rc = leases_may_adopt(l, shown, e);

	if (rc)
		return rc;
	tokenset_each (k, shown) {
		struct leased *x = find_or_add(l, k);

		if (!x->shown && !x->lease)
			x->since_ms = now_ms;
		x->shown = true;
	}
	return 0;
}

static int parse_annotation(
	const struct node_ids *ids, const char *s, struct lease_claim *c, struct err *e)
{
	const char *name = text_behind(s, VERSION), *colon;
	int rc;

	if (!name)
		return err_set(e, EINVAL, "it does not start with " VERSION);
	colon = name + strcspn(name, ":");
	rc = text_u64(name, (size_t)(colon - name), INT64_MAX, &c->name, e);
	if (rc || *name == '0' || *colon != ':')
		return err_set(e, EINVAL, "it does not name a lease");
	rc = tokenset_parse(&c->tokens, ids, colon + 1, e);
	return rc || tokenset_count(&c->tokens) ? rc : err_set(e, EINVAL, "it has no tokens");
}

int lease_annotation_tokens(
	const char *annotation, const struct node_ids *ids, struct tokenset *out, struct err *e)
{
	struct lease_claim c;
	int rc = parse_annotation(ids, annotation, &c, e);

	if (!rc)
		*out = c.tokens;
	return rc;
}

static bool is_run_by(const struct leased *x, const struct lease_user *user)
{
	return user_runs(x) && text_equal(x->user->is.container_id, user->container_id);
}

/* The author of the refused pod sees this text: pods of other namespaces have no name in it. */
static int refuse_taken(const struct leased *x, const char *does, const char *id,
	const struct lease_user *user, struct err *e)
{
	const struct lease_user *has = &x->user->is;

	if (!text_equal(has->pod_ns, user->pod_ns))
		return err_set(e, EBUSY, "a pod of another namespace %s CPU token %s", does, id);
	return err_set(e, EBUSY, "container %.63s of pod %.63s/%.63s %s CPU token %s",
		has->container_name, has->pod_ns, has->pod_name, does, id);
}

static int examine_token(
	const struct leases *l, struct token k, const struct lease_user *user, struct err *e)
{
	const struct leased *x = find_leased(l, k);
	char id[TOKEN_ID_MAX];

	(void)tokens_format(&l->t->ids, k, id, sizeof id);
	if (!x)
		return err_set(e, ENOENT, "CPU token %s is not leased", id);
	if (user_runs(x) && !is_run_by(x, user))
		return refuse_taken(x, "runs on", id, user, e);
	return 0;
}

/* Whether the container has them already: it came before others had names (leases_adopt()). */
static bool runs_on_all(
	const struct leases *l, const struct tokenset *tokens, const struct lease_user *user)
{
	tokenset_each (k, tokens)
		if (!is_run_by(find_leased(l, k), user))
			return false;
	return true;
}

static int examine(const struct leases *l, const char *annotation, const struct lease_user *user,
	uint64_t nr_cpus, struct lease_claim *c, struct err *e)
{
	int rc = parse_annotation(&l->t->ids, annotation, c, e);
	uint64_t latest;

	if (rc)
		return rc;
	tokenset_each (k, &c->tokens) {
		rc = examine_token(l, k, user, e);
		if (rc)
			return rc;
	}
	latest = leases_latest(l, &c->tokens);
	if (latest && latest != c->name && !runs_on_all(l, &c->tokens, user))
		return err_set(
			e, ENOENT, "its tokens are of lease %llu now", (unsigned long long)latest);
	if (nr_cpus != LEASE_ANY_NUMBER && tokenset_count(&c->tokens) != nr_cpus)
		return err_set(e, ERANGE,
			"the kubelet gave the container %u of numafit.io/cpu, and it asks for %llu "
			"whole CPUs in a Guaranteed pod: the two must be the same",
			tokenset_count(&c->tokens), (unsigned long long)nr_cpus);
	c->nodes = c->tokens.nodes;
	nodeset_each (n, c->nodes)
		c->on[n] = cpuset_count(&c->tokens.on[n]);
	return 0;
}

int leases_examine(const struct leases *l, const char *annotation, const struct lease_user *user,
	uint64_t nr_cpus, struct lease_claim *c, struct err *e)
{
	struct lease_claim found = {0};
	int rc = examine(l, annotation, user, nr_cpus, &found, e);

	if (rc)
		return err_add(e, rc, "annotation numafit.io/allocated");
	*c = found;
	return 0;
}

/* By name, too: a static pod may claim any uid, but no pod has another one's name. */
static bool is_of_pod(const struct lease_user *a, const struct lease_user *b)
{
	return text_equal(a->pod_uid, b->pod_uid) && text_equal(a->pod_ns, b->pod_ns) &&
	       text_equal(a->pod_name, b->pod_name);
}

int leases_wait_for(const struct leases *l, const struct tokenset *tokens,
	const struct lease_user *user, struct err *e)
{
	char id[TOKEN_ID_MAX];
	int rc = 1;

	tokenset_each (k, tokens) {
		const struct leased *x = find_leased(l, k);

		if (!x || !x->user)
			rc = 0;
		else if (!is_of_pod(&x->user->is, user))
			return refuse_taken(x, "is to come for",
				tokens_format(&l->t->ids, k, id, sizeof id), user, e);
	}
	return rc;
}

void leases_claim(struct leases *l, const struct lease_user *user, const struct lease_claim *c)
{
	struct user *u = find_user(l, user->container_id);

	assert(*user->container_id && tokenset_count(&c->tokens));
	if (!u)
		u = add_user(l, user);
	u->runs = true;
	tokenset_each (k, &c->tokens) {
		struct leased *x = find_leased(l, k);

		assert(x && (!user_runs(x) || is_run_by(x, user)));
		set_user(l, x, u);
	}
}

bool leases_release(struct leases *l, int64_t now_ms, const char *container_id)
{
	struct user *u = find_user(l, container_id);

	if (!u || !u->runs)
		return false;
	u->runs = false;
	for (size_t i = 0; i < l->tokens.nr; i++)
		if (l->tokens.at[i].user == u)
			l->tokens.at[i].since_ms = now_ms;
	return true;
}

void leases_pod_gone(struct leases *l, int64_t now_ms, const char *pod_uid)
{
	for (size_t i = 0; i < l->tokens.nr; i++) {
		struct leased *x = &l->tokens.at[i];

		if (!x->user || !text_equal(x->user->is.pod_uid, pod_uid))
			continue;
		set_user(l, x, NULL);
		x->since_ms = now_ms;
	}
}

struct tokenset leases_stale(
	const struct leases *l, int64_t now_ms, int64_t grace_ms, const struct tokenset *shown)
{
	struct tokenset stale = {0};

	for (size_t i = 0; i < l->tokens.nr; i++) {
		const struct leased *x = &l->tokens.at[i];

		if (!tokenset_has(shown, x->token) && !x->user &&
			(x->shown || now_ms - x->since_ms > grace_ms))
			tokenset_add(&stale, x->token);
	}
	return stale;
}

void leases_give_up(struct leases *l, const struct tokenset *tokens)
{
	tokenset_each (k, tokens) {
		struct leased *x = find_leased(l, k);

		if (!x || user_runs(x))
			continue;
		set_user(l, x, NULL);
		vec_remove(&l->tokens, (size_t)(x - l->tokens.at));
	}
}

bool leases_empty(const struct leases *l)
{
	return !l->tokens.nr;
}

unsigned leases_count_of(const struct leases *l, const char *container_id)
{
	const struct user *u = find_user(l, container_id);

	return u && u->runs ? u->nr_tokens : 0;
}

size_t leases_nr_running(const struct leases *l)
{
	size_t nr = 0;

	for (size_t i = 0; i < l->users.nr; i++)
		nr += l->users.at[i]->runs;
	return nr;
}

bool leases_has_pod(const struct leases *l, const char *pod_uid)
{
	for (size_t i = 0; i < l->users.nr; i++)
		if (text_equal(l->users.at[i]->is.pod_uid, pod_uid))
			return true;
	return false;
}

static bool pod_runs(const struct leases *l, const char *pod_uid)
{
	for (size_t i = 0; i < l->users.nr; i++)
		if (l->users.at[i]->runs && text_equal(l->users.at[i]->is.pod_uid, pod_uid))
			return true;
	return false;
}

const char *leases_next_idle_pod(const struct leases *l, size_t *at)
{
	while (*at < l->users.nr) {
		const char *uid = l->users.at[(*at)++]->is.pod_uid;

		if (!pod_runs(l, uid))
			return uid;
	}
	return NULL;
}

void leases_tokens(const struct leases *l, struct tokenset *leased, struct tokenset *claimed)
{
	*leased = *claimed = (struct tokenset){0};
	for (size_t i = 0; i < l->tokens.nr; i++) {
		tokenset_add(leased, l->tokens.at[i].token);
		if (user_runs(&l->tokens.at[i]))
			tokenset_add(claimed, l->tokens.at[i].token);
	}
}

static bool are_alike(const struct leased *a, const struct leased *b)
{
	return a->lease == b->lease && a->since_ms == b->since_ms && a->shown == b->shown &&
	       a->user == b->user;
}

static bool is_first_of_part(const struct leases *l, size_t i)
{
	for (size_t before = 0; before < i; before++)
		if (are_alike(&l->tokens.at[before], &l->tokens.at[i]))
			return false;
	return true;
}

bool leases_next(const struct leases *l, size_t *at, struct lease *out)
{
	size_t i = *at;

	while (i < l->tokens.nr && !is_first_of_part(l, i))
		i++;
	if (i >= l->tokens.nr)
		return false;
	const struct leased *first = &l->tokens.at[i];
	*at = i + 1;
	*out = (struct lease){.name = first->lease,
		.since_ms = first->since_ms,
		.claimed = user_runs(first),
		.shown = first->shown};
	if (first->user)
		out->user = first->user->is;
	for (; i < l->tokens.nr; i++)
		if (are_alike(first, &l->tokens.at[i]))
			tokenset_add(&out->tokens, l->tokens.at[i].token);
	return true;
}

static int check_part(const struct leases *l, const struct lease *part, struct err *e)
{
	const struct user *u = find_user(l, part->user.container_id);
	char id[TOKEN_ID_MAX];

	if (part->name > INT64_MAX || part->since_ms < 0)
		return err_set(e, EINVAL, "a lease whose name or time cannot be");
	if (!tokenset_count(&part->tokens))
		return err_set(
			e, EINVAL, "lease %llu has no tokens", (unsigned long long)part->name);
	if (part->claimed && !*part->user.container_id)
		return err_set(e, EINVAL, "lease %llu is claimed by nobody",
			(unsigned long long)part->name);
	if (u && u->runs != part->claimed)
		return err_set(e, EINVAL, "lease %llu: container %s both runs and does not",
			(unsigned long long)part->name, part->user.container_id);
	tokenset_each (k, &part->tokens)
		if (find_leased(l, k))
			return err_set(e, EEXIST, "CPU token %s is leased already",
				tokens_format(&l->t->ids, k, id, sizeof id));
	return leases_may_adopt(l, &part->tokens, e);
}

int leases_enter(struct leases *l, const struct lease *part, struct err *e)
{
	int rc = check_part(l, part, e);
	struct user *u;

	if (rc)
		return rc;
	u = find_user(l, part->user.container_id);
	if (!u && *part->user.container_id)
		u = add_user(l, &part->user);
	if (u)
		u->runs = part->claimed;
	tokenset_each (k, &part->tokens) {
		struct leased *x = vec_insert(&l->tokens, place_of_token(l, k));

		*x = (struct leased){.token = k,
			.shown = part->shown,
			.lease = part->name,
			.since_ms = part->since_ms};
		set_user(l, x, u);
	}
	l->last = part->name > l->last ? part->name : l->last;
	return 0;
}

static int leases_check_tokens(const struct leases *l, struct err *e)
{
	for (size_t i = 0; i < l->tokens.nr; i++) {
		const struct leased *x = &l->tokens.at[i];

		if (x->token.node >= l->t->ids.nr || x->token.number >= CPUSET_BITS)
			return err_set(e, EINVAL, "leased token %zu is of no NUMA node", i);
		if (i && !comes_before(l->tokens.at[i - 1].token, x->token))
			return err_set(
				e, EINVAL, "leased token %zu is not behind the one before", i);
		if (x->lease > l->last)
			return err_set(e, EINVAL, "leased token %zu: lease %llu was never given", i,
				(unsigned long long)x->lease);
	}
	return 0;
}

static unsigned leases_count_tokens(const struct leases *l, const struct user *u)
{
	unsigned nr = 0;

	for (size_t i = 0; i < l->tokens.nr; i++)
		nr += l->tokens.at[i].user == u;
	return nr;
}

int leases_check(const struct leases *l, struct err *e)
{
	size_t used = 0;
	int rc = leases_check_tokens(l, e);

	for (size_t i = 0; i < l->users.nr && !rc; i++) {
		const struct user *u = l->users.at[i];

		if (!u->nr_tokens || u->nr_tokens != leases_count_tokens(l, u))
			rc = err_set(e, EINVAL, "user %s has %u tokens, and %u have it",
				u->is.container_id, u->nr_tokens, leases_count_tokens(l, u));
		else if (!*u->is.container_id || find_user(l, u->is.container_id) != u)
			rc = err_set(e, EINVAL, "container \"%s\" is two users, or nobody",
				u->is.container_id);
		used += u->nr_tokens;
	}
	if (!rc && used + leases_count_tokens(l, NULL) != l->tokens.nr)
		rc = err_set(e, EINVAL, "a token has a user who is not there");
	return rc;
}
