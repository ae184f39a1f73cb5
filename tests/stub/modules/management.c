// SPDX-License-Identifier: Apache-2.0
// A library that is linked to NVML.
int nvmlInit_v2(void);

unsigned long STUB_FUNCTION(void);
__attribute__((visibility("default"))) unsigned long STUB_FUNCTION(void) { return (unsigned long)nvmlInit_v2(); }
