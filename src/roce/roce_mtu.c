/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The path MTU is what our route says. Where the path or the server's side takes less, the kernel
 * hears of it by ICMP (roce_ep_path_changed()), or nobody does: then small packets pass, large ones
 * do not, and a connection is lost again and again. So two connections in a row on which large
 * packets were due, and none passed, are the reason for a path MTU that Ethernet's own one has room
 * for. A server that ends in the middle of a call does not look like this: large packets passed
 * before, or do on the next connection.
 */
#include "roce_mtu.h"

#include "roce_int.h"

#define LOSSES_MOST 2u

void roce_mtu_forget(struct roce_mtu *m)
{
	*m = (struct roce_mtu){.most = ROCE_MTU_MOST};
}

uint32_t roce_mtu_of(const struct roce_mtu *m, unsigned int ip_mtu)
{
	uint32_t mtu = roce_wire_mtu(ip_mtu);

	return mtu < m->most ? mtu : m->most;
}

void roce_mtu_begin(struct roce_mtu *m)
{
	*m = (struct roce_mtu){.most = m->most, .losses = m->losses};
}

/* A peer that asks for one Read more than it may have under way had the answer of the first. */
void roce_mtu_read(struct roce_mtu *m, uint32_t psn, uint32_t len, bool again)
{
	if (len <= ROCE_MTU_SAFE)
		return;
	if (!again) {
		m->went |= ++m->reads > ROCE_READS;
	} else if (m->again == 0 || roce_wire_psn_diff(psn, m->again_psn) < 0) {
		m->again_psn = psn;
		m->again = 1;
	} else if (psn == m->again_psn) {
		m->again++;
	}
}

bool roce_mtu_end(struct roce_mtu *m, uint32_t mtu, bool send_due, bool write_due)
{
	bool ours = !m->went && (send_due || m->again >= ROCE_MTU_TRIES);
	bool theirs = !m->came && write_due;

	if (!ours && !theirs) {
		if (m->came || m->went)
			m->losses = 0;
		return false;
	}
	if (mtu <= ROCE_MTU_SAFE || ++m->losses < LOSSES_MOST)
		return false;
	m->most = ROCE_MTU_SAFE;
	return true;
}
