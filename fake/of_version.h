// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names by the versions that have them: CUSLICE_OF_<versions>(what) is `what` where the library that is built, of major
// version CUSLICE_LIBRARY_MAJOR, is one of them.

#define CUSLICE_OF_all(...) __VA_ARGS__
#if CUSLICE_LIBRARY_MAJOR == 11
#define CUSLICE_OF_until_12(...) __VA_ARGS__
#define CUSLICE_OF_from_12(...)
#define CUSLICE_OF_only_11(...) __VA_ARGS__
#define CUSLICE_OF_only_12(...)
#define CUSLICE_OF_only_13(...)
#elif CUSLICE_LIBRARY_MAJOR == 12
#define CUSLICE_OF_until_12(...) __VA_ARGS__
#define CUSLICE_OF_from_12(...) __VA_ARGS__
#define CUSLICE_OF_only_11(...)
#define CUSLICE_OF_only_12(...) __VA_ARGS__
#define CUSLICE_OF_only_13(...)
#else
#define CUSLICE_OF_until_12(...)
#define CUSLICE_OF_from_12(...) __VA_ARGS__
#define CUSLICE_OF_only_11(...)
#define CUSLICE_OF_only_12(...)
#define CUSLICE_OF_only_13(...) __VA_ARGS__
#endif
