/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a server is: the addresses of its name, and which of them all lanes use
 * now. They share a client ID, so no two of them may talk to different servers:
 * another address is tried when no lane has a connection, and who connected to
 * an earlier one meanwhile drops it.
 *
 * When all were tried the name is resolved again, by a thread, since that may
 * take its time; the attempts go on with what is known.
 *
 * Context: any thread. One lock, held for a few instructions.
 */
#ifndef RPCRDMAFS_ADDRS_H
#define RPCRDMAFS_ADDRS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRS_MAX   16u
#define ADDRS_TRIES 3u /* attempts without success before the next one */

struct addrs_list {
	unsigned int cnt;
	struct sockaddr_storage addr[ADDRS_MAX]; /* AF_INET, AF_INET6; in the order to be tried */
};

/*
 * An address with its port, for messages: 192.0.2.1:20049, [2001:db8::1]:20049,
 * [fe80::1%eth0]:20049. Asks no name server.
 */
void addrs_print(char *out, size_t size, const struct sockaddr *sa);

/* False: it is there already, of another family than those, or there is no room. */
bool addrs_list_add(struct addrs_list *list, const struct sockaddr *sa);

struct addrs;

/*
 * Resolves the name again. On a thread of its own; may take its time, and longer than the addrs
 * are there. False: not now.
 */
typedef bool addrs_resolve(void *ctx, struct addrs_list *ret);

/*
 * list is not empty; addr[first] is in use. own_thread: a thread resolves; false: addrs_step()
 * (tests). resolve: NULL: the list stays what it is. ctx is malloced, or NULL; it is given up also
 * when NULL is returned (with errno), and freed when nobody needs it any more, on any thread.
 */
struct addrs *addrs_new(const struct addrs_list *list, unsigned int first, addrs_resolve *resolve,
	void *ctx, bool own_thread);
/* After all lanes. Does not wait for a name that is being resolved. NULL is accepted. */
void addrs_free(struct addrs *a);

/* The address in use. Returns its turn: which of those in use it is. */
uint64_t addrs_now(struct addrs *a, struct sockaddr_storage *ret);
/* No connection could be made to the address of this turn, or none that was of use. */
void addrs_failed(struct addrs *a, uint64_t turn);
/* There is one. False: another address is in use by now, this connection is to be dropped. */
bool addrs_up(struct addrs *a, uint64_t turn);
/* One that addrs_up() counted is gone. good: it was of use; failures count anew. */
void addrs_down(struct addrs *a, bool good);

/* Tests: resolves if that is due. Returns whether it was. */
bool addrs_step(struct addrs *a);

#endif
