#include <host/cgroup_memory.h>

#include <errno.h>
#include <io/file.h>
#include <numafit/text.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
	/* some 45 lines, each with a number of at most 20 digits for each of 64 NUMA nodes */
	STAT_MAX = 128 << 10,
	FILE_NAME_MAX = 64,
	BYTES_LOG2_MAX = 50, /* of one counter on one NUMA node; so that no sum is too large */
};

/* The lines of memory.numa_stat that count here, and where. */
static const struct {
	const char *name;
	size_t at;
} rows[] = {
	{"anon", offsetof(struct cgroup_node_memory, anon)},
	{"file", offsetof(struct cgroup_node_memory, file)},
	{"shmem", offsetof(struct cgroup_node_memory, shmem)},
	{"file_mapped", offsetof(struct cgroup_node_memory, mapped)},
	{"unevictable", offsetof(struct cgroup_node_memory, unevictable)},
	{"kernel_stack", offsetof(struct cgroup_node_memory, kernel)},
	{"pagetables", offsetof(struct cgroup_node_memory, kernel)},
	{"sec_pagetables", offsetof(struct cgroup_node_memory, kernel)},
	{"slab_reclaimable", offsetof(struct cgroup_node_memory, kernel)},
	{"slab_unreclaimable", offsetof(struct cgroup_node_memory, kernel)},
};
enum { ANON, FILE_PAGES, NR_ROWS = sizeof rows / sizeof *rows };

/* A piece of the text. */
struct piece {
	const char *s;
	size_t len;
};

/* Cut off the next piece, up to the separator or the end; false: nothing is left. */
static bool next_piece(struct piece *rest, char separator, struct piece *out)
{
	const char *end = rest->len ? memchr(rest->s, separator, rest->len) : NULL;

	if (!rest->len)
		return false;
	*out = (struct piece){rest->s, end ? (size_t)(end - rest->s) : rest->len};
	size_t used = out->len + (end != NULL);
	*rest = (struct piece){rest->s + used, rest->len - used};
	return true;
}

static int refuse_word(const struct piece *word, struct err *e)
{
	return err_set(
		e, EINVAL, "\"%.*s\" is no count of bytes on a NUMA node", (int)word->len, word->s);
}

/* Read "N0=4096": the node's index, the bytes. 1: it is one; 0: it has no bytes, on a node that is
 * not the machine's; -EINVAL. */
static int parse_word(const struct piece *word, const struct node_ids *ids, unsigned *node,
	uint64_t *bytes, struct err *e)
{
	struct piece rest = *word, key;
	uint64_t id;

	if (!next_piece(&rest, '=', &key) || key.len < 2 || *key.s != 'N' ||
		text_u64(key.s + 1, key.len - 1, NODE_ID_MAX, &id, NULL) ||
		text_u64(rest.s, rest.len, UINT64_C(1) << BYTES_LOG2_MAX, bytes, NULL))
		return refuse_word(word, e);
	int index = node_index(ids, (unsigned)id);
	if (index < 0 && *bytes)
		return err_set(
			e, EINVAL, "\"%.*s\": there is no such NUMA node", (int)word->len, word->s);
	if (index >= 0)
		*node = (unsigned)index;
	return index >= 0;
}

/* Add the bytes of a line's words to the member at that place of each node. */
static int add_words(struct piece line, const struct node_ids *ids, size_t at,
	struct cgroup_memory *m, struct err *e)
{
	struct nodeset seen = {0};
	struct piece word;

	while (next_piece(&line, ' ', &word)) {
		unsigned node = 0;
		uint64_t bytes = 0;
		int rc = parse_word(&word, ids, &node, &bytes, e);

		if (rc < 0)
			return rc;
		if (!rc)
			continue;
		if (nodeset_has(seen, node))
			return err_set(e, EINVAL, "\"%.*s\": the line has this NUMA node twice",
				(int)word.len, word.s);
		seen = nodeset_or(seen, nodeset_of(node));
		*(uint64_t *)((char *)&m->node[node] + at) += bytes;
	}
	return 0;
}

static unsigned row_of(const struct piece *name)
{
	unsigned row = 0;

	while (row < NR_ROWS && (strlen(rows[row].name) != name->len ||
					memcmp(rows[row].name, name->s, name->len) != 0))
		row++;
	return row;
}

static int parse_line(struct piece line, const struct node_ids *ids, unsigned *seen,
	struct cgroup_memory *m, struct err *e)
{
	struct piece name;
	unsigned row = next_piece(&line, ' ', &name) ? row_of(&name) : NR_ROWS;

	if (row == NR_ROWS)
		return 0;
	if (*seen >> row & 1)
		return err_set(e, EINVAL, "the line %s is there twice", rows[row].name);
	*seen |= 1U << row;
	int rc = add_words(line, ids, rows[row].at, m, e);
	return rc ? err_add(e, rc, "%s", rows[row].name) : 0;
}

int cgroup_memory_parse(const char *text, size_t len, const struct node_ids *ids,
	struct cgroup_memory *out, struct err *e)
{
	const unsigned needed = 1U << ANON | 1U << FILE_PAGES;
	struct cgroup_memory m = *out;
	struct piece rest = {text, len}, line;
	unsigned seen = 0;

	while (next_piece(&rest, '\n', &line)) {
		int rc = parse_line(line, ids, &seen, &m, e);

		if (rc)
			return rc;
	}
	if ((seen & needed) != needed)
		return err_set(e, EINVAL, "the lines anon and file are not there");
	*out = m;
	return 0;
}

/* "total=0 N0=0 N1=0": one line (hugetlb_cgroup_read_numa_stat() of mm/hugetlb_cgroup.c). */
int cgroup_memory_parse_huge(const char *text, size_t len, const struct node_ids *ids,
	struct cgroup_memory *out, struct err *e)
{
	static const char total[] = "total=";
	struct cgroup_memory m = *out;
	struct piece rest = {text, len}, line, word;

	if (!next_piece(&rest, '\n', &line) || rest.len || !next_piece(&line, ' ', &word) ||
		word.len < strlen(total) || memcmp(word.s, total, strlen(total)) != 0)
		return err_set(e, EINVAL, "there is no line that begins with \"%s\"", total);
	int rc = add_words(line, ids, offsetof(struct cgroup_node_memory, huge), &m, e);
	if (rc)
		return rc;
	m.knows_huge = true;
	*out = m;
	return 0;
}

/* A page's size as the kernel has it in names of files (mem_fmt() of mm/hugetlb_cgroup.c). */
static void huge_file(uint64_t page_bytes, char name[FILE_NAME_MAX])
{
	enum { KB = 10, MB = 20, GB = 30 };
	unsigned shift = page_bytes >> GB ? GB : page_bytes >> MB ? MB : KB;

	(void)snprintf(name, FILE_NAME_MAX, "hugetlb.%llu%sB.numa_stat",
		(unsigned long long)(page_bytes >> shift),
		shift == GB   ? "G"
		: shift == MB ? "M"
			      : "K");
}

/* Read a file and parse it. */
static int read_stat(const struct cgroup_tree *t, const char *directory, const char *file,
	int (*parse)(const char *text, size_t len, const struct node_ids *ids,
		struct cgroup_memory *out, struct err *e),
	const struct node_ids *ids, struct cgroup_memory *out, struct err *e)
{
	char path[2 * CGROUP_PATH_MAX], text[STAT_MAX];
	int rc = cgroup_file_path(t, directory, file, path, sizeof path, e);

	if (!rc)
		rc = file_read_into(path, text, sizeof text, e);
	if (rc < 0)
		return rc;
	rc = parse(text, (size_t)rc, ids, out, e);
	return rc ? err_add(e, rc, "%s", path) : 0;
}

int cgroup_memory_read(const struct cgroup_tree *memory, const char *directory,
	const struct topo *topo, struct cgroup_memory *out, struct err *e)
{
	struct cgroup_memory m = {0};

	if (*memory->root && !memory->v2)
		return err_set(
			e, EOPNOTSUPP, "%s: memory by NUMA node needs cgroup v2", memory->root);
	int rc = read_stat(
		memory, directory, "memory.numa_stat", cgroup_memory_parse, &topo->ids, &m, e);
	for (unsigned kind = 1; kind < topo->nr_kinds && !rc; kind++) {
		char file[FILE_NAME_MAX];

		huge_file(topo->page_bytes[kind], file);
		rc = read_stat(
			memory, directory, file, cgroup_memory_parse_huge, &topo->ids, &m, e);
		/* no such controller, an older kernel, or a size that this kernel has not */
		if (rc == -ENOENT)
			rc = 0;
	}
	if (!rc)
		*out = m;
	return rc;
}

struct cgroup_memory_sum cgroup_memory_on(const struct cgroup_memory *m, struct nodeset nodes)
{
	struct cgroup_memory_sum s = {0};

	nodeset_each (n, nodes) {
		const struct cgroup_node_memory *at = &m->node[n];

		s.in_use += at->anon + at->file;
		s.moves += at->anon + at->mapped;
		s.huge += at->huge;
		s.unevictable += at->unevictable;
		s.kernel += at->kernel;
	}
	return s;
}
