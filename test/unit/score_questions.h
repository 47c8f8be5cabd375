#ifndef NUMAFIT_TEST_SCORE_QUESTIONS_H
#define NUMAFIT_TEST_SCORE_QUESTIONS_H

#include <codec/fields_json.h>
#include <questions/score_json.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Questions to a plugin, written as JSON with ' in place of ". */

enum { QUESTION_MAX = 16384, QUESTION_ARENA_BYTES = 16 << 20 };

/* The question's answer; {"unreadable": why} when there is none. The caller frees. */
static inline json_t *answer_question(json_t *question, const struct steps *steps)
{
	json_t *result = NULL;
	struct arena a;
	struct err e = {0};

	arena_init(&a, QUESTION_ARENA_BYTES);
	if (score_json_answer(question, steps, &a, &result, &e) < 0)
		result = json_pack("{s:s}", "unreadable", e.text);
	arena_fini(&a);
	return result;
}

__attribute__((format(printf, 1, 0))) static inline json_t *question_of(
	const char *fmt, va_list args)
{
	static char text[QUESTION_MAX];
	struct err e = {0};
	json_t *v = NULL;

	(void)vsnprintf(text, sizeof text, fmt, args);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	if (json_parse(text, strlen(text), &v, &e))
		(void)fprintf(stderr, "%s: %s\n", e.text, text);
	return v;
}

__attribute__((format(printf, 1, 2))) static inline json_t *ask_score(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	json_t *question = question_of(fmt, args);
	va_end(args);
	json_t *result = answer_question(question, NULL);
	json_decref(question);
	return result;
}

/* A text of the answer: its error, or why it could not be read; "" when it is neither. */
static inline const char *refusal_of(const json_t *result)
{
	const json_t *error = json_object_get(result, "error");

	if (!error)
		error = json_object_get(result, "unreadable");
	return error ? json_string_value(error) : "";
}

/* Node i's score; -1: null. */
static inline long long score_of(const json_t *result, size_t i)
{
	const json_t *score =
		json_object_get(json_array_get(json_object_get(result, "nodes"), i), "score");

	return json_is_integer(score) ? json_integer_value(score) : -1;
}

#endif
