// SPDX-License-Identifier: Apache-2.0
// Stands for a CUDA runtime and says which one it is.
const char* cuslice_test_runtime(void) { return CUSLICE_STUB_RUNTIME; }
