#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# prog_fio with files of 16 MiB.
# vm-boot: own
# vm-timeout: 1800
# tier: soak

MIB=${MIB:-16} exec bash "$(dirname "$0")/prog_fio.sh"
