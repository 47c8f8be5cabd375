#include <host/device_node.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <io/file.h>
#include <limits.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a container may cost, for the runtime waits: links and files that are looked at, and devices
 * that are found. The first ones count. */
enum { LOOKUPS_MAX = 4096, BUS_LOOKUPS_MAX = 64, DEVICES_MAX = 256 };
/* Majors that are nowhere (the kernel's admin-guide/devices.txt): null, zero, random; terminals. */
enum { MAJOR_MEMORY = 1, MAJOR_TERMINAL = 5 };
enum { NUMBER_MAX = 32, LINK_NAME_MAX = NAME_MAX + 64 };

struct search {
	const char *root;
	const struct topo *t;
	struct arena *a;
	bool too_small; /* is the arena */
	unsigned lookups_left;
	unsigned nr;
	struct device found[DEVICES_MAX]; /* ascending by id */
};

static bool may_look(struct search *s)
{
	if (!s->lookups_left || s->nr == DEVICES_MAX)
		return false;
	s->lookups_left--;
	return true;
}

/* PCI addresses: domain, bus, device, function, as in 0000:81:00.0 */

static const char as_in_sysfs[] = "::.", with_dashes[] = "---";
static const char hexadecimal[] = "0123456789abcdefABCDEF";

/* The length of the PCI address, with those separators, that s begins with; 0: with none. */
static size_t pci_address(const char *s, const char *separators)
{
	static const struct {
		size_t min, max;
	} digits[] = {{4, 8}, {2, 2}, {2, 2}, {1, 1}};
	size_t len = 0;

	for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
		size_t nr = strspn(s + len, hexadecimal);

		if (nr < digits[i].min || nr > digits[i].max)
			return 0;
		len += nr;
		if (separators[i] && s[len++] != separators[i])
			return 0;
	}
	return len;
}

/* Cut the path behind the last PCI device that it goes through: what lies below is of that device,
 * and its other names, such as drm/card0 and drm/renderD128, lead there, too. */
static void cut_behind_pci(char *path)
{
	char *end = NULL;

	for (char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		size_t len = pci_address(at, as_in_sysfs);
		if (len && (at[len] == '/' || !at[len]))
			end = at + len;
	}
	if (end)
		*end = '\0';
}

/* Devices at their paths below /sys/devices */

static void search_add_device(struct search *s, unsigned i, const char *id, unsigned node)
{
	char *copy = arena_strdup(s->a, id);

	s->too_small |= !copy;
	if (!copy)
		return;
	memmove(&s->found[i + 1], &s->found[i], (s->nr - i) * sizeof *s->found);
	s->found[i] = (struct device){.id = copy,
		.has_topology = true,
		.placed = true,
		.nodes = nodeset_of(node),
		.healthy = true};
	s->nr++;
}

/* Whether the device at that path has a NUMA node to show at all. *node: the dense index of its
 * node; -1: it has none (the kernel says -1), or one that the machine lacks, or nobody can read it.
 */
static bool read_numa_node(struct search *s, const char *path, int *node)
{
	char file[PATH_MAX], text[NUMBER_MAX];
	uint64_t id;

	*node = -1;
	int len = snprintf(file, sizeof file, "%s/sys/devices/%s/numa_node", s->root, path);
	if (len >= (int)sizeof file || !may_look(s))
		return true;
	len = file_read_into(file, text, sizeof text, NULL);
	if (len >= 0 && text_u64(text, strcspn(text, "\n"), NODE_ID_MAX, &id, NULL) == 0)
		*node = node_index(&s->t->ids, (unsigned)id);
	return len != -ENOENT;
}

/* The device at that path, or of its ancestors the first that has a numa_node. Cuts the path. */
static void look_at_device(struct search *s, char *path)
{
	char *slash;
	int node = -1;

	cut_behind_pci(path);
	do {
		slash = strrchr(path, '/');
		/* its id is its PCI address, or else the path */
		const char *name = slash ? slash + 1 : path;
		const char *id = pci_address(name, as_in_sysfs) ? name : path;
		unsigned i = s->nr; /* where it is among those found, or would be */

		while (i && strcmp(s->found[i - 1].id, id) >= 0)
			i--;
		if (i < s->nr && strcmp(s->found[i].id, id) == 0)
			return;
		if (read_numa_node(s, path, &node)) {
			if (node >= 0)
				search_add_device(s, i, id, (unsigned)node);
			return;
		}
		if (slash)
			*slash = '\0';
	} while (slash);
}

/* The path below /sys/devices that the link of that name, below /sys, points to. The kernel's links
 * are relative; nobody follows this one, and one that points elsewhere points nowhere. */
static bool read_link(struct search *s, const char *name, char path[PATH_MAX])
{
	char link[PATH_MAX], target[PATH_MAX];
	const char *at = target, *up;
	int len = snprintf(link, sizeof link, "%s/sys/%s", s->root, name);

	if (len >= (int)sizeof link || !may_look(s))
		return false;
	ssize_t got = readlink(link, target, sizeof target);
	if (got < 0 || (size_t)got == sizeof target)
		return false;
	target[got] = '\0';
	while ((up = text_behind(at, "../")))
		at = up;
	at = text_behind(at, "devices/");
	return at && !strstr(at, "/..") && text_copy(path, PATH_MAX, at);
}

/* VFIO: /dev/vfio/12 stands for all devices of IOMMU group 12 */

static void look_at_group(struct search *s, const char *number)
{
	char directory[PATH_MAX], name[LINK_NAME_MAX], path[PATH_MAX];
	uint64_t group;

	if (text_u64(number, strlen(number), UINT32_MAX, &group, NULL) < 0)
		return;
	int len = snprintf(directory, sizeof directory, "%s/sys/kernel/iommu_groups/%llu/devices",
		s->root, (unsigned long long)group);
	DIR *d = len < (int)sizeof directory && may_look(s) ? opendir(directory) : NULL;
	if (!d)
		return;
	for (const struct dirent *f = readdir(d); f && s->lookups_left; f = readdir(d)) {
		(void)snprintf(name, sizeof name, "kernel/iommu_groups/%llu/devices/%s",
			(unsigned long long)group, f->d_name);
		if (*f->d_name != '.' && read_link(s, name, path))
			look_at_device(s, path);
	}
	(void)closedir(d);
}

static void look_at_file(struct search *s, const struct device_file *f)
{
	char name[LINK_NAME_MAX], path[PATH_MAX];

	if (f->major == MAJOR_MEMORY || f->major == MAJOR_TERMINAL)
		return;
	(void)snprintf(name, sizeof name, "dev/%s/%u:%u", f->type == 'b' ? "block" : "char",
		f->major, f->minor);
	bool linked = read_link(s, name, path);
	const char *group =
		linked ? text_behind(path, "virtual/vfio/") : text_behind(f->path, "/dev/vfio/");

	if (group)
		look_at_group(s, group);
	else if (linked && !text_behind(path, "virtual/"))
		look_at_device(s, path);
}

/* CDI */

/* The PCI device whose address the len bytes at `at` are, with any separators. */
static void look_at_pci(struct search *s, const char *at, size_t len)
{
	char link[LINK_NAME_MAX], path[PATH_MAX];
	struct text t;

	text_init(&t, link, sizeof link);
	text_add(&t, "bus/pci/devices/");
	for (size_t i = 0, separators = 0; i < len; i++)
		text_add(&t, "%c",
			isxdigit((unsigned char)at[i]) ? tolower((unsigned char)at[i])
						       : as_in_sysfs[separators++]);
	if (read_link(s, link, path))
		look_at_device(s, path);
}

static void look_at_cdi(struct search *s, const char *name)
{
	const char *equals = strchr(name, '='), *device = equals ? equals + 1 : name;
	const char *at = text_behind(device, "pci-") ?: device;
	size_t len = pci_address(at, as_in_sysfs) ?: pci_address(at, with_dashes);

	if (len)
		look_at_pci(s, at, len);
}

const struct device_resource *device_nodes_of(
	const char *root, const struct topo *t, const struct request *req, struct arena *a)
{
	struct search s = {.root = root, .t = t, .a = a, .lookups_left = LOOKUPS_MAX};

	for (size_t i = 0; i < req->nr_files; i++)
		look_at_file(&s, &req->file[i]);
	for (size_t i = 0; i < req->nr_cdi; i++)
		look_at_cdi(&s, req->cdi[i]);
	if (!s.nr || s.too_small)
		return NULL;
	struct device_resource *r = arena_alloc(a, sizeof *r);
	struct device *devices = arena_array(a, s.nr, sizeof *devices);
	if (!r || !devices)
		return NULL;
	memcpy(devices, s.found, s.nr * sizeof *devices);
	*r = (struct device_resource){"devices", s.nr, devices};
	return r;
}

/* Root complexes: pci0000:80 has its devices in it, all on one NUMA node, and none of its own */

static bool is_root(const char *bus)
{
	const char *domain = text_behind(bus, "pci");
	size_t digits = domain ? strspn(domain, hexadecimal) : 0;

	return digits && domain[digits] == ':' && domain[digits + 1] &&
	       !domain[digits + 1 + strspn(domain + digits + 1, hexadecimal)];
}

static void look_at_root(struct search *s, const char *bus)
{
	char directory[PATH_MAX], path[PATH_MAX];
	int len = snprintf(directory, sizeof directory, "%s/sys/devices/%s", s->root, bus);
	DIR *d = len < (int)sizeof directory && may_look(s) ? opendir(directory) : NULL;

	if (!d)
		return;
	for (const struct dirent *f = readdir(d); f && !s->nr && s->lookups_left; f = readdir(d)) {
		(void)snprintf(path, sizeof path, "%.*s/%s", NUMBER_MAX, bus, f->d_name);
		if (pci_address(f->d_name, as_in_sysfs))
			look_at_device(s, path);
	}
	(void)closedir(d);
}

int device_node_of_bus(const char *root, const struct topo *t, const char *bus)
{
	char memory[PATH_MAX];
	struct arena a;
	struct search s = {.root = root, .t = t, .a = &a, .lookups_left = BUS_LOOKUPS_MAX};
	size_t len = pci_address(bus, as_in_sysfs);

	arena_init_fixed(&a, memory, sizeof memory);
	if (len && !bus[len])
		look_at_pci(&s, bus, len);
	else if (is_root(bus))
		look_at_root(&s, bus);
	return s.nr ? (int)nodeset_next(s.found[0].nodes, 0) : -1;
}
