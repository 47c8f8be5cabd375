#ifndef NUMAFIT_CLI_TERMINAL_H
#define NUMAFIT_CLI_TERMINAL_H

#include <numafit-cli/top_frame.h>
#include <numafit/err.h>
#include <termios.h>

/* The terminal as a screen: its keys come one by one and unseen, and it is as it was afterwards. By
 * termios and the sequences of ECMA-48 that every terminal of today has. */

/* Beside the characters themselves. */
enum terminal_key {
	KEY_NONE,
	KEY_ESCAPE = '\033',
	KEY_BACKSPACE = 0x7f,
	KEY_UP = 0x100,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END
};

enum { KEYS_MAX = 256 };
struct terminal {
	int columns, rows;
	bool colours;
	bool ended; /* a signal came (`signal`), or the terminal is gone */
	int signal;
	/* Its own */
	struct termios before;
	int signals; /* a descriptor */
	char keys[KEYS_MAX];
	size_t nr_keys;
	bool escape; /* what is there is the key Escape, not the beginning of a sequence */
};

/* Whether standard input and output are a terminal that can be used so. */
bool terminal_is_there(void);
/* Take it; signals that end the program, stop it or come with another size are the terminal's from
 * then on. 0 or -errno. */
int terminal_open(struct terminal *t, struct err *e);
/* Give it back as it was. */
void terminal_close(struct terminal *t);
/* Wait for keys, a signal or that the descriptor (-1: none) is readable, at most for ms. Whether it
 * is readable. */
bool terminal_wait(struct terminal *t, int fd, int ms);
/* The next key that was pressed: a character or one of the above; KEY_NONE: there is no more. */
int terminal_key(struct terminal *t);
void terminal_draw(struct terminal *t, const struct frame *f);

/* The key at the beginning of what was read, and how many bytes it is; 0: it has not come as a
 * whole. What is no key is KEY_NONE. */
size_t key_read(const char *bytes, size_t len, int *key);

#endif
