/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "log.h"

#define RXE_VENDOR_ID 0xffffffu /* drivers/infiniband/sw/rxe/rxe_param.h */

/*
 * Without this libibverbs refuses to destroy what belonged to a device that is
 * gone, and all of it leaks. It is read when libibverbs is first used, and
 * setting it is safe only while there is one thread: hence a constructor.
 */
__attribute__((constructor)) static void allow_destroy_of_removed(void)
{
	setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 0);
}

static void set_nonblock(int fd)
{
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* ---- asynchronous events ---- */

static void on_event(struct verbs_ep *ep, enum ibv_event_type type, bool ours, int port)
{
	switch (type) { /* NOLINT: all others are for the log */
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_CQ_ERR:
		if (!ours)
			return;
		log_warn("%s: %s", ep->name, ibv.event_type_str(type));
		verbs_ep_lost(ep, -EIO);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		log_warn("%s: the RDMA device failed or was removed", ep->name);
		verbs_dev_gone(ep);
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
		log_info("%s: port %d is %s", ep->dev.caps.dev_name, port,
			type == IBV_EVENT_PORT_ERR ? "down" : "up");
		break;
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_WQ_FATAL:
	default:
		log_debug("%s: %s", ep->name, ibv.event_type_str(type));
		break;
	}
}

static void on_async(struct reactor_fd *src, uint32_t events)
{
	struct verbs_ep *ep = container_of(src, struct verbs_ep, dev.async);
	struct ibv_async_event ev;

	while (ep->dev.verbs && !ibv.get_async_event(ep->dev.verbs, &ev)) {
		enum ibv_event_type type = ev.event_type;
		bool ours = type == IBV_EVENT_CQ_ERR ? ev.element.cq == ep->cq
						     : ev.element.qp == ep->qp;
		int port = ev.element.port_num;

		/* First: destroying the queue pair waits for it. */
		ibv.ack_async_event(&ev);
		on_event(ep, type, ours, port);
	}
}

/* ---- opening and closing ---- */

void verbs_dev_gone(struct verbs_ep *ep)
{
	ep->dev.gone = true;
	if (ep->state == EP_IDLE) /* not here: an event of the device is being handled */
		reactor_timer_in(ep->r, &ep->timer, 0);
	else
		verbs_ep_lost(ep, -ENODEV);
}

static uint32_t clamp(int value)
{
	return value < 0 ? 0 : (uint32_t)value;
}

static int query_caps(struct verbs_dev *dev)
{
	struct fab_caps *caps = &dev->caps;
	const unsigned int mw_flags = IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
	struct ibv_device_attr attr;
	int rc = ibv.query_device(dev->verbs, &attr);

	if (rc)
		return -rc;
	*caps = (struct fab_caps){
		.mw2b = (attr.device_cap_flags & mw_flags) == mw_flags && attr.max_mw > 0,
		.max_sge = clamp(attr.max_sge),
		.max_wr = clamp(attr.max_qp_wr),
		.max_mw = clamp(attr.max_mw),
		.max_rd = clamp(attr.max_qp_rd_atom),
		.max_mr_size = attr.max_mr_size,
	};
	/* Both queues complete into one completion queue. */
	if (caps->max_wr > clamp(attr.max_cqe) / 2)
		caps->max_wr = clamp(attr.max_cqe) / 2;
	if (caps->max_sge > VERBS_SEND_SGES)
		caps->max_sge = VERBS_SEND_SGES;
	strncpy(caps->dev_name, ibv.get_device_name(dev->verbs->device),
		sizeof(caps->dev_name) - 1);
	/*
	 * The name is the administrator's choice, and rdma-ndd overwrites the node
	 * description: the vendor ID, which no real device has, is what remains.
	 */
	dev->is_rxe = attr.vendor_id == RXE_VENDOR_ID;
	return 0;
}

int verbs_dev_open(struct verbs_ep *ep, bool *ret_new)
{
	struct verbs_dev *dev = &ep->dev;
	struct ibv_device *device = ep->id->verbs->device;
	int rc;

	/* libibverbs keeps the device object while a context is open: same pointer, same device. */
	if (dev->verbs && dev->verbs->device == device && !dev->gone) {
		*ret_new = false;
		return 0;
	}
	verbs_dev_close(ep);
	verbs_mem_free_mrs(ep);
	errno = 0;
	dev->verbs = ibv.open_device(device);
	if (!dev->verbs)
		return errno ? -errno : -ENODEV;
	rc = query_caps(dev);
	if (rc)
		goto out_close;
	errno = 0;
	dev->pd = ibv.alloc_pd(dev->verbs);
	if (!dev->pd) {
		rc = errno ? -errno : -ENOMEM;
		goto out_close;
	}
	set_nonblock(dev->verbs->async_fd);
	rc = reactor_fd_add(ep->r, &dev->async, dev->verbs->async_fd, EPOLLIN, on_async);
	if (rc)
		goto out_close;
	dev->watch = verbs_cm_watch(ep);
	*ret_new = true;
	return 0;

out_close:
	verbs_dev_close(ep);
	return rc;
}

/*
 * A driver that cannot take a device away from its users (rxe in Linux 6.1)
 * lets its removal wait until the last context is closed. librdmacm keeps its
 * own for good when the machine's last device goes (rdma-core 44:
 * sync_devices_list() returns early), so its descriptors are made to point
 * elsewhere: the kernel is rid of the context, librdmacm has no use for it.
 * Seen in the test VM: else `rdma link delete` hangs until the process ends.
 * The watch still holds a reference, so nobody closes the descriptors meanwhile.
 * Lost are the few bytes of librdmacm's protection domain, once a removal.
 */
static void orphan(struct ibv_context *cm_verbs)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)dup3(fd, cm_verbs->cmd_fd, O_CLOEXEC);
	(void)dup3(fd, cm_verbs->async_fd, O_CLOEXEC);
	close(fd);
}

void verbs_dev_close(struct verbs_ep *ep)
{
	struct verbs_dev *dev = &ep->dev;

	if (dev->watch) {
		if (dev->removed)
			orphan(dev->watch->verbs);
		rdma.destroy_id(dev->watch);
	}
	dev->watch = NULL;
	dev->gone = dev->removed = false;
	if (!dev->verbs)
		return;
	reactor_fd_del(&dev->async);
	list_for_each (pos, &dev->mrs)
		verbs_mem_release_mr(container_of(pos, struct verbs_mr, link));
	if (dev->pd && ibv.dealloc_pd(dev->pd))
		log_debug("%s: protection domain: %s", ep->name, strerror(errno));
	dev->pd = NULL;
	if (ibv.close_device(dev->verbs))
		log_debug("%s: device: %s", ep->name, strerror(errno));
	dev->verbs = NULL;
}
