// SPDX-License-Identifier: Apache-2.0
// A library without CUDA.
unsigned long STUB_FUNCTION(void);

__attribute__((visibility("default"))) unsigned long STUB_FUNCTION(void) { return 0; }
