#include <kubelet/dra_pb.h>

#include <codec/pb_message.h>
#include <dra.pb-c.h>
#include <errno.h>

static int dra_too_many(struct err *e, size_t nr, const char *what)
{
	return err_set(e, ENOMEM, "%zu %s are too many for one message", nr, what);
}

/* The bytes of the message, when the kubelet takes that many. */
static int dra_encode(const ProtobufCMessage *m, struct arena *a, struct blob *out, struct err *e)
{
	struct blob bytes;
	int rc = pb_encode(m, a, &bytes, e);

	if (rc)
		return rc;
	if (bytes.len > DRA_MESSAGE_MAX)
		return err_set(e, EMSGSIZE, "%s of %zu bytes, the kubelet takes %d",
			m->descriptor->short_name, bytes.len, DRA_MESSAGE_MAX);
	*out = bytes;
	return 0;
}

static const char *dra_text(ProtobufCBinaryData bytes, struct arena *a)
{
	return bytes.len ? arena_strndup(a, (const char *)bytes.data, bytes.len) : "";
}

int dra_claims_decode(struct blob message, struct arena *a, const struct dra_claim_ref **out,
	size_t *nr, struct err *e)
{
	const Dra__NodeResourcesRequest *m =
		pb_decode(&dra__node_resources_request__descriptor, message, a, e);

	if (!m)
		return -EBADMSG;
	if (m->n_claims > DRA_CLAIMS_MAX)
		return err_set(e, E2BIG, "%zu claims, more than %d", m->n_claims, DRA_CLAIMS_MAX);
	struct dra_claim_ref *list = arena_array(a, m->n_claims, sizeof *list);
	if (!list)
		return err_set(e, EBADMSG, "a request of %zu claims is too large", m->n_claims);
	for (size_t i = 0; i < m->n_claims; i++) {
		const Dra__Claim *c = m->claims[i];

		list[i] = (struct dra_claim_ref){
			dra_text(c->namespace_, a), c->uid, dra_text(c->name, a)};
		if (!list[i].ns || !list[i].name)
			return err_set(
				e, EBADMSG, "a request of %zu claims is too large", m->n_claims);
	}
	*out = list;
	*nr = m->n_claims;
	return 0;
}

static void fill_dra_device(
	const struct dra_device *from, enum dra_version version, Dra__Device *to)
{
	dra__device__init(to);
	to->request_names = (char **)(uintptr_t)from->request; /* only read */
	to->n_request_names = from->nr_requests;
	to->pool_name = pb_string(from->pool);
	to->device_name = pb_string(from->device);
	to->cdi_device_ids = (char **)(uintptr_t)from->cdi;
	to->n_cdi_device_ids = from->nr_cdi;
	if (version != DRA_V1BETA1)
		to->share_id = pb_string(from->share_id);
}

int dra_prepared_encode(const struct dra_device *device, size_t nr, enum dra_version version,
	struct arena *a, struct blob *out, struct err *e)
{
	Dra__Device *forms = arena_array(a, nr, sizeof *forms);
	Dra__Device **list = arena_array(a, nr, sizeof(void *));
	Dra__NodePrepareResourceResponse m;

	if (!forms || !list)
		return dra_too_many(e, nr, "devices");
	for (size_t i = 0; i < nr; i++) {
		fill_dra_device(&device[i], version, &forms[i]);
		list[i] = &forms[i];
	}
	dra__node_prepare_resource_response__init(&m);
	m.devices = list;
	m.n_devices = nr;
	return dra_encode(&m.base, a, out, e);
}

int dra_prepare_error_encode(const char *text, struct arena *a, struct blob *out, struct err *e)
{
	Dra__NodePrepareResourceResponse m;

	dra__node_prepare_resource_response__init(&m);
	m.error = pb_string(text);
	return dra_encode(&m.base, a, out, e);
}

int dra_unprepare_error_encode(const char *text, struct arena *a, struct blob *out, struct err *e)
{
	Dra__NodeUnprepareResourceResponse m;

	dra__node_unprepare_resource_response__init(&m);
	m.error = pb_string(text);
	return dra_encode(&m.base, a, out, e);
}

int dra_answers_encode(const struct dra_claim_answer *answer, size_t nr, struct arena *a,
	struct blob *out, struct err *e)
{
	Dra__ClaimEntry *forms = arena_array(a, nr, sizeof *forms);
	Dra__ClaimEntry **list = arena_array(a, nr, sizeof(void *));
	Dra__NodeResourcesResponse m;

	if (!forms || !list)
		return dra_too_many(e, nr, "claims");
	for (size_t i = 0; i < nr; i++) {
		dra__claim_entry__init(&forms[i]);
		forms[i].key = pb_string(answer[i].uid);
		forms[i].there_case = DRA__CLAIM_ENTRY__THERE_VALUE;
		forms[i].value.len = answer[i].bytes.len;
		forms[i].value.data = (uint8_t *)(uintptr_t)answer[i].bytes.data; /* only read */
		list[i] = &forms[i];
	}
	dra__node_resources_response__init(&m);
	m.claims = list;
	m.n_claims = nr;
	return dra_encode(&m.base, a, out, e);
}

/* Holds one message and all that hangs from it. */
struct health_form {
	Dra__DeviceHealth health;
	Dra__DeviceIdentifier device;
};

static Dra__DeviceHealth *fill_health(struct health_form *f, const struct dra_health *from)
{
	dra__device_identifier__init(&f->device);
	f->device.pool_name = pb_string(from->pool);
	f->device.device_name = pb_string(from->device);
	dra__device_health__init(&f->health);
	f->health.device = &f->device;
	f->health.health =
		from->healthy ? DRA__HEALTH_STATUS__HEALTHY : DRA__HEALTH_STATUS__UNHEALTHY;
	f->health.last_updated_time = from->last_updated_s;
	f->health.health_check_timeout_seconds = from->timeout_s;
	f->health.message = pb_string(from->text);
	return &f->health;
}

int dra_health_encode(const struct dra_health *device, size_t nr, struct arena *a, struct blob *out,
	struct err *e)
{
	struct health_form *forms = arena_array(a, nr, sizeof *forms);
	Dra__DeviceHealth **list = arena_array(a, nr, sizeof(void *));
	Dra__NodeWatchResourcesResponse m;

	if (!forms || !list)
		return dra_too_many(e, nr, "devices");
	for (size_t i = 0; i < nr; i++)
		list[i] = fill_health(&forms[i], &device[i]);
	dra__node_watch_resources_response__init(&m);
	m.devices = list;
	m.n_devices = nr;
	return dra_encode(&m.base, a, out, e);
}
