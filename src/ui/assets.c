#include <ui/assets.h>

#include <numafit/text.h>

/* The assembler puts the files in, by their path from the repository's root, where make runs. */
#define EMBED(name, file)                                                                          \
	__asm__(".pushsection .rodata.ui_" #name ",\"a\"\n"                                        \
		"ui_" #name ":\n.incbin \"src/ui/" file "\"\n"                                     \
		"ui_" #name "_end:\n.byte 0\n"                                                     \
		".popsection\n");                                                                  \
	extern const char ui_##name[] __attribute__((visibility("hidden"))),                       \
		ui_##name##_end[] __attribute__((visibility("hidden")))

EMBED(node_html, "page.html");
EMBED(node_js, "page.js");
EMBED(cluster_html, "cluster.html");
EMBED(cluster_css, "cluster.css");
EMBED(cluster_js, "cluster.js");
/* both have these */
EMBED(css, "page.css");
EMBED(shared_js, "shared.js");
EMBED(icon, "icon.svg");

static const char html[] = "text/html; charset=utf-8", css[] = "text/css; charset=utf-8",
		  script[] = "text/javascript; charset=utf-8", image[] = "image/svg+xml";

enum { FILES_MAX = 8 };
struct ui_page {
	struct embedded {
		const char *path, *type, *at, *end;
	} file[FILES_MAX]; /* behind the last: NULLs */
};

#define SHARED                                                                                     \
	{"/page.css", css, ui_css, ui_css_end},                                                    \
		{"/shared.js", script, ui_shared_js, ui_shared_js_end},                            \
	{                                                                                          \
		"/icon.svg", image, ui_icon, ui_icon_end                                           \
	}

const struct ui_page ui_node_page = {{
	{"/", html, ui_node_html, ui_node_html_end},
	{"/page.js", script, ui_node_js, ui_node_js_end},
	SHARED,
}};

const struct ui_page ui_cluster_page = {{
	{"/", html, ui_cluster_html, ui_cluster_html_end},
	{"/cluster.css", css, ui_cluster_css, ui_cluster_css_end},
	{"/cluster.js", script, ui_cluster_js, ui_cluster_js_end},
	SHARED,
}};

bool ui_asset_find(const struct ui_page *page, const char *path, struct ui_asset *out)
{
	for (const struct embedded *f = page->file; f->path; f++) {
		if (!text_equal(path, f->path))
			continue;
		*out = (struct ui_asset){f->path, f->type, f->at, (size_t)(f->end - f->at)};
		return true;
	}
	return false;
}
