// SPDX-License-Identifier: Apache-2.0
// A library whose function is that of a library that it needs.
unsigned long STUB_FUNCTION(void);
unsigned long STUB_CALLS(void);

__attribute__((visibility("default"))) unsigned long STUB_FUNCTION(void) { return STUB_CALLS(); }
