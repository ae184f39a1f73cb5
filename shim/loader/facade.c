// SPDX-License-Identifier: Apache-2.0
/* A facade: it lends its name, and its functions are those of libcuslice.so, which it needs. Only the mark is its own,
   as it is looked for in each library by itself. See shim/CMakeLists.txt. */
const char* cuslice_marker(void);
__attribute__((visibility("default"))) const char* cuslice_marker(void) { return "cuslice"; }
