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

EMBED(html, "page.html");
EMBED(css, "page.css");
EMBED(js, "page.js");
EMBED(icon, "icon.svg");

static const struct embedded {
	const char *path, *type, *at, *end;
} embedded[] = {
	{"/", "text/html; charset=utf-8", ui_html, ui_html_end},
	{"/page.css", "text/css; charset=utf-8", ui_css, ui_css_end},
	{"/page.js", "text/javascript; charset=utf-8", ui_js, ui_js_end},
	{"/icon.svg", "image/svg+xml", ui_icon, ui_icon_end},
};

bool ui_asset_find(const char *path, struct ui_asset *out)
{
	for (size_t i = 0; i < sizeof embedded / sizeof *embedded; i++) {
		const struct embedded *f = &embedded[i];

		if (!text_equal(path, f->path))
			continue;
		*out = (struct ui_asset){f->path, f->type, f->at, (size_t)(f->end - f->at)};
		return true;
	}
	return false;
}
