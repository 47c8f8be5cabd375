#include <numafit-cli/terminal.h>

#include <errno.h>
#include <numafit/text.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { COLUMNS_ELSE = 80, ROWS_ELSE = 24, ESCAPE_MS = 25 };

/* The other screen, no cursor, no wrapping; and back. */
static const char enter[] = "\033[?1049h\033[?25l\033[?7l",
		  leave[] = "\033[?7h\033[?25h\033[?1049l";
static const int taken_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

bool terminal_is_there(void)
{
	const char *name = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && name && *name &&
	       !text_equal(name, "dumb");
}

static void measure(struct terminal *t)
{
	struct winsize size;
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;

	t->columns = known && size.ws_col ? size.ws_col : COLUMNS_ELSE;
	t->rows = known && size.ws_row ? size.ws_row : ROWS_ELSE;
}

static void terminal_write(struct terminal *t, const char *bytes, size_t len)
{
	while (len && !t->ended) {
		ssize_t nr = write(STDOUT_FILENO, bytes, len);

		if (nr < 0 && errno == EAGAIN)
			(void)poll(&(struct pollfd){STDOUT_FILENO, POLLOUT, 0}, 1, -1);
		else if (nr < 0 && errno != EINTR)
			t->ended = true;
		bytes += nr > 0 ? nr : 0;
		len -= nr > 0 ? (size_t)nr : 0;
	}
}

/* Keys come at once and are not echoed; those for signals stay. */
static int take(struct terminal *t)
{
	struct termios raw = t->before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw))
		return -errno;
	terminal_write(t, enter, sizeof enter - 1);
	measure(t);
	return 0;
}

static void give_back(struct terminal *t)
{
	ssize_t nr = write(STDOUT_FILENO, leave, sizeof leave - 1);

	(void)nr;
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &t->before);
}

static void signals_of_terminal(sigset_t *set)
{
	(void)sigemptyset(set);
	for (size_t i = 0; i < sizeof taken_signals / sizeof *taken_signals; i++)
		(void)sigaddset(set, taken_signals[i]);
}

int terminal_open(struct terminal *t, struct err *e)
{
	const char *no_colours = getenv("NO_COLOR");
	sigset_t set;

	*t = (struct terminal){.colours = !no_colours || !*no_colours};
	signals_of_terminal(&set);
	if (tcgetattr(STDIN_FILENO, &t->before))
		return err_set(e, errno, "the terminal: %s", strerror(errno));
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (t->signals < 0)
		return err_set(e, errno, "signalfd: %s", strerror(errno));
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	int rc = take(t);
	if (rc)
		terminal_close(t);
	return rc ? err_set(e, -rc, "the terminal: %s", strerror(-rc)) : 0;
}

void terminal_close(struct terminal *t)
{
	sigset_t set;

	give_back(t);
	signals_of_terminal(&set);
	(void)close(t->signals);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* As Ctrl-Z is meant: it stops, with the terminal as it was, and goes on where it is continued. */
static void stop_for_a_while(struct terminal *t)
{
	give_back(t);
	(void)raise(SIGSTOP);
	if (take(t))
		t->ended = true;
}

static void read_signals(struct terminal *t)
{
	struct signalfd_siginfo info;

	while (read(t->signals, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGWINCH) {
			measure(t);
		} else if (info.ssi_signo == SIGTSTP) {
			stop_for_a_while(t);
		} else {
			t->signal = (int)info.ssi_signo;
			t->ended = true;
		}
	}
}

static void read_keys(struct terminal *t)
{
	if (t->nr_keys == sizeof t->keys)
		t->nr_keys = 0; /* nobody types so fast */
	ssize_t nr = read(STDIN_FILENO, t->keys + t->nr_keys, sizeof t->keys - t->nr_keys);

	t->ended = t->ended || nr == 0 || (nr < 0 && errno != EINTR && errno != EAGAIN);
	t->nr_keys += nr > 0 ? (size_t)nr : 0;
}

bool terminal_wait(struct terminal *t, int fd, int ms)
{
	struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {t->signals, POLLIN, 0}, {fd, POLLIN, 0}};
	bool half = t->nr_keys > 0; /* of a sequence: only Escape itself is followed by nothing */
	int nr = poll(fds, sizeof fds / sizeof *fds, half && ms > ESCAPE_MS ? ESCAPE_MS : ms);

	if (nr < 0)
		return false;
	if (fds[0].revents)
		read_keys(t);
	else
		t->escape = half && nr == 0;
	if (fds[1].revents)
		read_signals(t);
	return fds[2].revents != 0;
}

size_t key_read(const char *bytes, size_t len, int *key)
{
	static const struct {
		const char *bytes;
		enum terminal_key key;
	} rows[] = {{"\033[A", KEY_UP}, {"\033[B", KEY_DOWN}, {"\033OA", KEY_UP},
		{"\033OB", KEY_DOWN}, {"\033[5~", KEY_PAGE_UP}, {"\033[6~", KEY_PAGE_DOWN},
		{"\033[H", KEY_HOME}, {"\033[F", KEY_END}, {"\033OH", KEY_HOME},
		{"\033OF", KEY_END}, {"\033[1~", KEY_HOME}, {"\033[4~", KEY_END}};
	size_t at = 2;

	*key = KEY_NONE;
	if (!len)
		return 0;
	if (*bytes != KEY_ESCAPE) {
		*key = (unsigned char)*bytes;
		return 1;
	}
	if (len > 1 && bytes[1] != '[' && bytes[1] != 'O') {
		*key = KEY_ESCAPE;
		return 1;
	}
	/* parameters of a sequence are below '@', its last byte is not */
	while (at < len && bytes[at] < '@')
		at++;
	if (at >= len)
		return 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (at + 1 == strlen(rows[i].bytes) && memcmp(bytes, rows[i].bytes, at + 1) == 0)
			*key = rows[i].key;
	return at + 1;
}

int terminal_key(struct terminal *t)
{
	int key = KEY_NONE;
	size_t nr;

	if (t->escape) {
		t->escape = false;
		t->nr_keys = 0;
		return KEY_ESCAPE;
	}
	while (key == KEY_NONE && (nr = key_read(t->keys, t->nr_keys, &key))) {
		t->nr_keys -= nr;
		memmove(t->keys, t->keys + nr, t->nr_keys);
	}
	return key;
}

void terminal_draw(struct terminal *t, const struct frame *f)
{
	static const char *const styles[NR_FRAME_STYLES] = {[FRAME_PLAIN] = "",
		[FRAME_TITLE] = "\033[1m",
		[FRAME_WARNING] = "\033[1;31m",
		[FRAME_HEADING] = "\033[7m",
		[FRAME_NOTE] = "\033[2m"};
	auto_free char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		return;
	(void)fputs("\033[H", to);
	for (size_t i = 0; i < f->nr && i < (size_t)t->rows; i++) {
		const char *style = t->colours ? styles[f->at[i].style] : "";

		(void)fprintf(to, "%s\033[2K%s%s%s", i ? "\r\n" : "", style, f->at[i].text,
			*style ? "\033[m" : "");
	}
	if (f->nr < (size_t)t->rows)
		(void)fputs("\r\n\033[J", to);
	if (!fclose(to))
		terminal_write(t, text, len);
}
