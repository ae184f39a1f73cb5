// SPDX-License-Identifier: Apache-2.0
// Functions that the driver does not have are refused by name, once.

#include <dlfcn.h>

#include <fstream>
#include <sstream>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("a function that isn't there says its name once and succeeds never") {
    const Folder folder;
    const std::string log = folder.path() + "/log";
    CHECK(in_child({{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_LOG", log}}, [](const Report& report) {
              CUtexref texture = nullptr;
              EXPECT_EQUAL(cuTexRefCreate(&texture), CUDA_ERROR_NOT_INITIALIZED);
              use_device(report);
              for (int i = 0; i < 3; i++)
                  EXPECT_EQUAL(cuTexRefDestroy(nullptr), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(cuTexRefCreate(&texture), CUDA_ERROR_NOT_SUPPORTED);
          }) == "");
    CHECK(text_of(log) ==
          "cuslice fake GPU: cuTexRefDestroy is not supported\ncuslice fake GPU: cuTexRefCreate is not supported\n");
}

TEST_CASE("every exported function that isn't implemented is refused, whatever its arguments") {
    CHECK(in_child({{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_LOG", "/dev/null"}}, [](const Report& report) {
              use_device(report);
              for (const char* name : {"cuGLInit", "cuEGLStreamConsumerConnect", "cuVDPAUGetDevice",
                                       "cuMemGetAttribute_v2", "cuMemcpyBatchAsync", "cuStreamWriteValue32_v2",
                                       "cuSurfRefGetArray", "cuImportExternalSemaphore"}) {
                  const auto function = reinterpret_cast<CUresult (*)(void*, void*, void*)>(dlsym(RTLD_DEFAULT, name));
                  EXPECT(function != nullptr);
                  EXPECT_EQUAL(function(nullptr, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
              }
          }) == "");
}

namespace {

/// Messages of the fake driver when libraries of these names ask for an export table, each twice.
std::string said_of(std::initializer_list<const char*> files) {
    std::string said;
    CHECK(in_child(
              one_t4,
              [&](const Report& report) {
                  for (const char* file : files) {
                      void* library = dlopen((std::string(FAKE_EXPORT_ASKERS "/") + file).c_str(), RTLD_NOW);
                      EXPECT(library != nullptr);
                      const auto ask = reinterpret_cast<int (*)(void*, const void**)>(dlsym(library, "ask_for_table"));
                      const void* table = &report;
                      for (int i = 0; i < 2; i++)
                          EXPECT_EQUAL(ask(reinterpret_cast<void*>(&cuGetExportTable), &table),
                                       CUDA_ERROR_NOT_SUPPORTED);
                      EXPECT(table == &report);
                  }
              },
              &said) == "");
    return said;
}

}  // namespace

TEST_CASE("a library that carries NVIDIA's runtime is named, and isn't told to relink") {
    CHECK(said_of({"libneeds-gpu.so"}) == "cuslice fake GPU: " FAKE_EXPORT_ASKERS
                                          "/libneeds-gpu.so carries NVIDIA's own CUDA runtime, which needs a GPU; "
                                          "cuslice run --redirect-runtime=all leads it to the fake "
                                          "GPU's, unless it is stripped of its symbol table (docs/fake-gpu.md)\n");
}

TEST_CASE("compilers of NVIDIA's that ask for tables and go on without are no fault") {
    CHECK(said_of({"libnvrtc.so.13", "libnvJitLink.so.13"}) == "");
    const std::string both = said_of({"libnvrtc.so.13", "libneeds-gpu.so"});
    CHECK(both.find("libneeds-gpu.so carries") != std::string::npos);
}

TEST_CASE("a program that carries NVIDIA's runtime is told how to go on") {
    std::string said;
    CHECK(in_child(
              one_t4,
              [](const Report& report) {
                  const void* table = &report;
                  const CUuuid id{};
                  EXPECT_EQUAL(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT(table == &report);
              },
              &said) == "");
    CHECK(said.find("nvcc -cudart shared (NVCC_APPEND_FLAGS=\"-cudart shared\" make)") != std::string::npos);
    CHECK(said.find("CUDA_RUNTIME_LIBRARY Shared") != std::string::npos);
    CHECK(said.find('\n') == said.size() - 1);
}
