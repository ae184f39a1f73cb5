// SPDX-License-Identifier: Apache-2.0
/* A library that only lends its name: libcuda.so or libnvidia-ml.so, for a package that can't hold a symbolic link. Its
   functions are those of the library that it needs. See CMakeLists.txt. */
extern const char cuslice_fake_name[];
__attribute__((visibility("hidden"))) const char cuslice_fake_name[] = "cuslice";
