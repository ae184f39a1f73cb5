// SPDX-License-Identifier: Apache-2.0
/* A library that exports nothing: it lends its name. See shim/CMakeLists.txt. */
typedef int cuslice_library_is_empty;
