#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# t_random with 100,000 operations cached and as many O_DIRECT on each client.
# vm-boot: own
# vm-timeout: 9000
# tier: soak

OPS=${OPS:-100000} exec bash "$(dirname "$0")/t_random.sh"
