// SPDX-License-Identifier: Apache-2.0
// Says which runtime the loader has given it.
#include <stdio.h>

const char* cuslice_test_runtime(void);

int main(void) { return puts(cuslice_test_runtime()) < 0; }
