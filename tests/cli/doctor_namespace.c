// SPDX-License-Identifier: Apache-2.0
/* Opens the driver in a namespace of the loader's own. */
#define _GNU_SOURCE
#include <dlfcn.h>

int main(void) { return dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW) != 0; }
