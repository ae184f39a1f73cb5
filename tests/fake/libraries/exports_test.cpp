// SPDX-License-Identifier: Apache-2.0
// Every name that NVIDIA's libraries export is there, with its version, and what isn't supported fails by name.

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <set>

#include "tests/catch.h"
#include "tests/fake/libraries/library.h"

using namespace fake_test;

namespace {

struct Versions {
    int first, last;
};
constexpr Versions all{11, 13}, from_12{12, 13}, until_12{11, 12}, only_11{11, 11}, only_12{12, 12}, only_13{13, 13};

struct Export {
    const char* name;
    Versions versions;
    bool wide = false;  // its integers have 64 bits, from 12 on
};

#define CUSLICE_EXPORT(name, versions) {#name, versions},
#define CUSLICE_EXPORT_64(name, versions) {#name, versions}, {#name "_64", versions, true},
constexpr Export cublas[] = {
#include "fake/cublas/exports.def"
};
constexpr Export cublaslt[] = {
#include "fake/cublaslt/exports.def"
};
constexpr Export cudnn[] = {
#include "fake/cudnn/exports.def"
};

struct Library {
    const char* file;
    int major;
    const Export *begin, *end;
    size_t names;  // of the genuine one
    int refused;
};
const Library kLibraries[] = {
    {"libcublas.so.11", 11, std::begin(cublas), std::end(cublas), 507, 15},
    {"libcublas.so.12", 12, std::begin(cublas), std::end(cublas), 746, 15},
    {"libcublas.so.13", 13, std::begin(cublas), std::end(cublas), 756, 15},
    {"libcublasLt.so.11", 11, std::begin(cublaslt), std::end(cublaslt), 234, 15},
    {"libcublasLt.so.12", 12, std::begin(cublaslt), std::end(cublaslt), 180, 15},
    {"libcublasLt.so.13", 13, std::begin(cublaslt), std::end(cublaslt), 186, 15},
    {"libcudnn.so.9", 12, std::begin(cudnn), std::end(cudnn), 243, 3000},
};

std::set<std::string> names_of(const Library& library) {
    std::set<std::string> names;
    for (const Export* one = library.begin; one != library.end; one++)
        if (one->versions.first <= library.major && library.major <= one->versions.last &&
            (!one->wide || library.major > 11))
            names.insert(one->name);
    return names;
}

/// True if the library's symbol is weak, which marks a function that it doesn't support.
bool is_weak(const char* name, void* address) {
    Dl_info info{};
    void* symbol = nullptr;
    return dladdr1(address, &info, &symbol, RTLD_DL_SYMENT) != 0 && info.dli_sname != nullptr &&
           std::string(info.dli_sname) == name &&
           ELF64_ST_BIND(static_cast<const ElfW(Sym)*>(symbol)->st_info) == STB_WEAK;
}

}  // namespace

TEST_CASE("every name of the genuine cuBLAS, cuBLASLt and cuDNN is exported with the genuine version") {
    for (const Library& library : kLibraries) {
        INFO(library.file);
        CHECK(names_of(library).size() == library.names);
        CHECK(in_child(one_t4, [&](const Report& report) {
                  void* opened = open_library(report, library.file);
                  for (const std::string& name : names_of(library)) {
                      if (dlvsym(opened, name.c_str(), library.file) == nullptr)
                          report.fail(__FILE__, __LINE__, name + " is missing");
                  }
              }) == "");
    }
}

TEST_CASE("a function of cuBLAS, cuBLASLt or cuDNN that is not supported says so once, and fails") {
    for (const Library& library : kLibraries) {
        INFO(library.file);
        std::string said;
        std::set<std::string> refused;
        CHECK(in_child(
                  one_t4,
                  [&](const Report& report) {
                      void* opened = open_library(report, library.file);
                      for (const std::string& name : names_of(library)) {
                          void* function = dlvsym(opened, name.c_str(), library.file);
                          if (!is_weak(name.c_str(), function))
                              continue;
                          for (int i = 0; i < 2; i++) {
                              EXPECT_EQUAL(call<int>(opened, name.c_str(), nullptr, nullptr, nullptr), library.refused);
                          }
                      }
                  },
                  &said) == "");
        for (const std::string& name : names_of(library)) {
            INFO(name);
            CHECK(count_of(said, "cuslice fake GPU: " + name + " is not supported\n") <= 1);
        }
        // All that computes but the multiplications; and these are not among them.
        CHECK(count_of(said, " is not supported\n") > static_cast<int>(library.names) / 2);
        CHECK(count_of(said, ": cublasSgemm_v2 is") + count_of(said, ": cublasLtMatmul is") == 0);
        CHECK(count_of(said, "skipped") == 0);
    }
}

TEST_CASE("the fake GPU's libraries need nothing but libc, and do nothing when they are loaded") {
    for (const Library& library : kLibraries) {
        INFO(library.file);
        CHECK(in_child(one_t4, [&](const Report& report) {
                  void* opened = open_library(report, library.file);
                  link_map* map = nullptr;
                  EXPECT_EQUAL(dlinfo(opened, RTLD_DI_LINKMAP, &map), 0);
                  const char* strings = nullptr;
                  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
                      if (entry->d_tag == DT_STRTAB)
                          strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
                  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
                      if (entry->d_tag != DT_NEEDED)
                          continue;
                      const std::string name = strings + entry->d_un.d_val;
                      // A sanitizer's runtime brings libstdc++ along.
                      if ((!CUSLICE_TEST_SANITIZED && name.rfind("libstdc++", 0) == 0) ||
                          name.rfind("libcuda", 0) == 0 || name.rfind("libcublas", 0) == 0)
                          report.fail(__FILE__, __LINE__, name);
                  }
                  int devices = 0;
                  EXPECT_EQUAL(cuDeviceGetCount(&devices), CUDA_ERROR_NOT_INITIALIZED);
              }) == "");
    }
}
