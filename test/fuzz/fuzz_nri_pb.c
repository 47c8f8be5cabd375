#include <assert.h>
#include <nri/nri_pb.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 64 << 20, CONTAINERS_MAX = 1000 };

static void check_text(const char *s)
{
	assert(s && text_is_utf8(s, strlen(s)));
}

static void check_request(const struct request *req)
{
	check_text(req->container_id);
	check_text(req->ask.name);
	check_text(req->cpus);
	check_text(req->mems);
	check_text(req->pod.sandbox_id);
	check_text(req->pod.uid);
	check_text(req->pod.ns);
	check_text(req->pod.name);
	for (size_t i = 0; i < req->pod.nr_annotations; i++)
		check_text(req->pod.annotations[i].value);
	for (size_t i = 0; i < req->nr_files; i++) {
		check_text(req->file[i].path);
		assert(req->file[i].type == 'c' || req->file[i].type == 'b');
	}
	for (size_t i = 0; i < req->nr_cdi; i++)
		check_text(req->cdi[i]);
	if (req->allocated)
		check_text(req->allocated);
	assert(req->ask.nr_memory <= TOPO_KINDS);
	for (unsigned i = 0; i < req->ask.nr_memory; i++)
		assert(req->ask.memory[i].bytes &&
			(!i || req->ask.memory[i - 1].page_bytes < req->ask.memory[i].page_bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blob in = {data, size};
	struct nri_configuration conf;
	struct nri_running all;
	struct nri_subject s;
	struct arena a;
	bool more;

	arena_init(&a, MEMORY_MAX);
	(void)nri_chunk_decode(in, &more, NULL);
	if (nri_configuration_decode(in, &a, &conf, NULL) == 0) {
		check_text(conf.runtime_name);
		check_text(conf.nri_version);
		check_text(conf.config);
	}
	if (nri_subject_decode(in, &a, &s, NULL) == 0)
		check_request(&s.req);
	if (nri_state_change_decode(in, &a, &s, NULL) == 0)
		check_request(&s.req);
	if (nri_running_decode(in, CONTAINERS_MAX, &a, &all, NULL) == 0)
		for (size_t i = 0; i < all.nr; i++)
			check_request(&all.containers[i]);
	arena_fini(&a);
	return 0;
}
