/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings of any bytes in formats that want UTF-8. Pure. */
#ifndef RPCRDMAFS_TEXT_H
#define RPCRDMAFS_TEXT_H

#include <stdio.h>

/* A JSON string with its quotes. Bytes that are no UTF-8 become the four characters \xNN. */
void text_json(FILE *out, const char *text);
/* The value of a Prometheus label with its quotes, likewise; so do control characters. */
void text_label(FILE *out, const char *text);
/* For a terminal: control characters and what is no UTF-8 become \xNN. */
void text_plain(FILE *out, const char *text);

#endif
