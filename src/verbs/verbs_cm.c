/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_int.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>

#include "log.h"

/* Reasons of a reject (IBA volume 1, table 125; the kernel's enum ib_cm_rej_reason). */
#define REJ_TIMEOUT    4
#define REJ_STALE_CONN 10

static int to_ms(uint64_t ns)
{
	uint64_t ms = ns / NSEC_PER_MSEC;

	return ms < 1 ? 1 : ms > 600000 ? 600000 : (int)ms;
}

/* ---- errors ---- */

/* Status of an address or route error: -errno of the kernel; -1: librdmacm found no device. */
static int resolve_err(int status)
{
	return status < -1 ? status : -ENODEV;
}

static int connect_err(const struct rdma_cm_event *ev)
{
	int status = ev->status;

	if (ev->event == RDMA_CM_EVENT_REJECTED) {
		if (status < 0) /* iWARP */
			return status;
		/* The peer still knows our last queue pair under this number: try again at once. */
		if (status == REJ_STALE_CONN)
			return -ECONNRESET;
		return status == REJ_TIMEOUT ? -ETIMEDOUT : -ECONNREFUSED;
	}
	if (ev->event == RDMA_CM_EVENT_UNREACHABLE)
		return status == -ETIMEDOUT ? status : -EHOSTUNREACH;
	return status < -1 ? status : -ECONNRESET;
}

/* ---- events ---- */

static void on_addr_resolved(struct verbs_ep *ep)
{
	struct fab_event ev = {.type = FAB_EV_RESOLVED};
	int rc = verbs_dev_open(ep, &ev.new_device);

	if (rc) {
		verbs_ep_fail(ep, FAB_STEP_SETUP, rc);
		return;
	}
	verbs_ep_set_name(ep, rdma_get_peer_addr(ep->id));
	verbs_ep_set_state(ep, EP_RESOLVED);
	verbs_ep_emit(ep, &ev);
}

static void on_route_resolved(struct verbs_ep *ep)
{
	uint32_t rd = ep->dev.caps.max_rd;
	struct rdma_conn_param param = {
		.private_data = ep->priv,
		.private_data_len = ep->priv_len,
		/* knfsd refuses a connection whose client serves no RDMA Reads. */
		.responder_resources = (uint8_t)(rd < 1     ? 1
						 : rd > 255 ? 255
							    : rd),
		.initiator_depth = 0, /* we never read */
		.retry_count = ep->conf.retry_count,
		/* For the server's Sends: it waits while our receive queue is empty for a moment.
		 */
		.rnr_retry_count = 7,
		.qp_num = ep->qp->qp_num,
	};

	ep->step = FAB_STEP_CONNECT;
	if (rdma.connect(ep->id, &param))
		verbs_ep_fail(ep, FAB_STEP_CONNECT, -errno);
	else
		ep->cm_connected = true;
}

static void on_established(struct verbs_ep *ep, const struct rdma_conn_param *param)
{
	struct fab_event ev = {
		.type = FAB_EV_ESTABLISHED,
		.priv = param->private_data,
		.priv_len = param->private_data ? param->private_data_len : 0,
	};

	reactor_timer_cancel(ep->r, &ep->timer);
	verbs_ep_set_state(ep, EP_UP);
	verbs_ep_emit(ep, &ev);
}

/* The peer accepted: the queue pair can be connected, then the peer be told. */
static void on_response(struct verbs_ep *ep, const struct rdma_conn_param *param)
{
	int rc = verbs_qp_to_rts(ep);

	if (!rc && rdma.establish(ep->id))
		rc = -errno;
	if (rc)
		verbs_ep_fail(ep, FAB_STEP_CONNECT, rc);
	else
		on_established(ep, param);
}

static void on_removal(struct verbs_ep *ep)
{
	if (ep->dev.removed) /* told for each id: the connection's and the watch */
		return;
	log_warn("%s: the RDMA device was removed", ep->name);
	ep->dev.removed = true;
	verbs_dev_gone(ep);
}

/* What of a connection in the making arrives in another state is of no interest. */
static void on_progress(struct verbs_ep *ep, const struct rdma_cm_event *ev)
{
	enum rdma_cm_event_type type = ev->event;

	if (ep->state == EP_RESOLVING && type == RDMA_CM_EVENT_ADDR_RESOLVED)
		on_addr_resolved(ep);
	if (ep->state != EP_CONNECTING)
		return;
	if (type == RDMA_CM_EVENT_ROUTE_RESOLVED)
		on_route_resolved(ep);
	else if (type == RDMA_CM_EVENT_CONNECT_RESPONSE)
		on_response(ep, &ev->param.conn);
	else if (type == RDMA_CM_EVENT_ESTABLISHED) /* iWARP: the kernel did it all */
		on_established(ep, &ev->param.conn);
}

static void dispatch(struct verbs_ep *ep, const struct rdma_cm_event *ev)
{
	log_debug("%s: %s, status %d", ep->name, rdma.event_str(ev->event), ev->status);
	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
		on_progress(ep, ev);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		verbs_ep_fail(ep, FAB_STEP_ADDR, resolve_err(ev->status));
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		verbs_ep_fail(ep, FAB_STEP_ROUTE, resolve_err(ev->status));
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		verbs_ep_lost(ep, connect_err(ev));
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		verbs_ep_lost(ep, 0);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE: /* a bond moved the address to another port */
		verbs_ep_lost(ep, -ECONNRESET);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		on_removal(ep);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	}
}

static void on_channel(struct reactor_fd *src, uint32_t events)
{
	struct verbs_ep *ep = container_of(src, struct verbs_ep, ch_fd);
	struct rdma_cm_event *ev;

	/*
	 * No callback from here destroys the event's id or the endpoint (that is
	 * left to a timer), so that the event may be acknowledged afterwards.
	 */
	while (!rdma.get_cm_event(ep->ch, &ev)) {
		if (ev->id == ep->id)
			dispatch(ep, ev);
		else if (ev->id == ep->dev.watch && ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
			on_removal(ep);
		rdma.ack_cm_event(ev);
	}
}

/* ---- life ---- */

/*
 * Kernels before 5.9 share pinned pages with a child of fork(), and the parent's next write goes to
 * a copy that the adapter does not know: Sends carry old bytes, doorbells are not heard. The
 * program forks with lanes up (fusermount3; a look at a mount that may be dead). So libibverbs is
 * to keep what it registers from children; where the kernel copies at the fork it does nothing
 * (rdma-core 35). All that is kept back are whole pages that a child does not need before it calls
 * exec() or ends: slabs, and the queues of the provider.
 */
static void survive_forks(void)
{
	int rc = ibv.fork_init();

	if (rc)
		log_warn("libibverbs cannot prepare for fork(): %s; with a kernel before 5.9 wrong "
			 "bytes may be sent after one",
			strerror(rc));
}

/*
 * Opened when it is needed first: a machine without a device, or without the libraries, is an error
 * of fab_ep_resolve().
 */
static int id_open(struct verbs_ep *ep)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rc;

	if (ep->ch)
		return 0;
	rc = verbs_lib_load(ep->why, sizeof(ep->why));
	if (!rc)
		rc = verbs_probe(ep->why, sizeof(ep->why));
	if (rc)
		return rc;
	pthread_once(&once, survive_forks);
	errno = 0;
	ep->ch = rdma.create_event_channel();
	if (!ep->ch) {
		rc = errno;
		/* No device, no module, no device node: all the same to the user. */
		return !rc || rc == ENOENT || rc == EPERM || rc == ENOSYS ? -ENODEV : -rc;
	}
	rc = fcntl(ep->ch->fd, F_SETFL, fcntl(ep->ch->fd, F_GETFL) | O_NONBLOCK) ? -errno : 0;
	if (!rc)
		rc = reactor_fd_add(ep->r, &ep->ch_fd, ep->ch->fd, EPOLLIN, on_channel);
	if (rc)
		verbs_cm_close(ep);
	return rc;
}

void verbs_cm_close(struct verbs_ep *ep)
{
	if (!ep->ch)
		return;
	reactor_fd_del(&ep->ch_fd);
	rdma.destroy_event_channel(ep->ch);
	ep->ch = NULL;
}

void verbs_cm_destroy_id(struct verbs_ep *ep)
{
	if (!ep->id)
		return;
	rdma.destroy_id(ep->id);
	ep->id = NULL;
	ep->cm_connected = false;
}

struct rdma_cm_id *verbs_cm_watch(struct verbs_ep *ep)
{
	const struct sockaddr *local = rdma_get_local_addr(ep->id);
	struct sockaddr_storage addr = {0};
	struct rdma_cm_id *watch;

	if (local->sa_family == AF_INET6) {
		memcpy(&addr, local, sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)&addr)->sin6_port = 0;
	} else {
		memcpy(&addr, local, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)&addr)->sin_port = 0;
	}
	if (rdma.create_id(ep->ch, &watch, ep, RDMA_PS_TCP))
		return NULL;
	if (!rdma.bind_addr(watch, (struct sockaddr *)&addr) && watch->verbs)
		return watch;
	log_debug("%s: the device cannot be watched: %s", ep->name, strerror(errno));
	rdma.destroy_id(watch);
	return NULL;
}

/* Starts a disconnection or answers the peer's; a peer that is dead is not waited for. */
void verbs_cm_disconnect(struct verbs_ep *ep)
{
	if (ep->cm_connected)
		(void)rdma.disconnect(ep->id);
	ep->cm_connected = false;
}

int verbs_cm_resolve(struct verbs_ep *ep, const struct sockaddr *src, const struct sockaddr *dst)
{
	uint8_t ack_timeout = ep->conf.ack_timeout, tos = ep->conf.tos;
	int rc;

	if (ep->state != EP_IDLE)
		return -EBUSY;
	verbs_ep_set_name(ep, dst);
	ep->why[0] = '\0';
	rc = id_open(ep);
	if (rc)
		return rc;
	if (rdma.create_id(ep->ch, &ep->id, ep, RDMA_PS_TCP)) {
		ep->id = NULL;
		return -errno;
	}
	/*
	 * Before the route is resolved: from it the value gets into the connection
	 * request, and so to the server's queue pair. The default is 2 s: what one
	 * lost packet costs.
	 */
	if (ack_timeout && rdma.set_option(ep->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
				   &ack_timeout, sizeof(ack_timeout)))
		log_debug("%s: the ACK timeout cannot be set: %s", ep->name, strerror(errno));
	if (tos && rdma.set_option(ep->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
		log_debug("%s: the type of service cannot be set: %s", ep->name, strerror(errno));
	ep->step = FAB_STEP_ADDR;
	/* librdmacm does not write to the addresses, it only forgot to say so. */
	if (rdma.resolve_addr(ep->id, (struct sockaddr *)(uintptr_t)src,
		    (struct sockaddr *)(uintptr_t)dst, to_ms(ep->conf.resolve_timeout_ns))) {
		rc = -errno;
		verbs_cm_destroy_id(ep);
		if (rc == -ENODEV)
			verbs_dev_close(ep);
		return rc;
	}
	verbs_ep_set_state(ep, EP_RESOLVING);
	return 0;
}

int verbs_cm_connect(struct verbs_ep *ep, const void *priv, size_t priv_len)
{
	if (ep->state != EP_RESOLVED || !ep->qp || priv_len > sizeof(ep->priv))
		return -EINVAL;
	if (ep->dev.gone)
		return -ENODEV;
	if (priv_len)
		memcpy(ep->priv, priv, priv_len);
	ep->priv_len = (uint8_t)priv_len;
	if (rdma.resolve_route(ep->id, to_ms(ep->conf.resolve_timeout_ns)))
		return -errno;
	ep->step = FAB_STEP_ROUTE;
	verbs_ep_set_state(ep, EP_CONNECTING);
	/* The CM itself would try for about a minute. */
	reactor_timer_in(ep->r, &ep->timer, ep->conf.connect_timeout_ns);
	return 0;
}
