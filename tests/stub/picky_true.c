// SPDX-License-Identifier: Apache-2.0
// A /bin/true that fails if /etc/ld.so.preload is there.
#include <unistd.h>

int main(void) { return access("/etc/ld.so.preload", F_OK) == 0; }
