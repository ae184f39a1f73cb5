// SPDX-License-Identifier: Apache-2.0
// The linker at run time: what it takes, and the module that comes of it.

#include <elf.h>

#include <cstring>
#include <string>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/made_up_cubin.h"
#include "tests/fake/driver/made_up_fat_binary.h"
#include "tests/fake/driver/sample_ptx.h"

using namespace fake_test;

namespace {

const std::string second_text = ".version 8.0\n.target sm_50\n.visible .entry other() { ret; }\n";

CUlinkState begin(const Report& report) {
    CUlinkState link = nullptr;
    EXPECT_EQUAL(cuLinkCreate(0, nullptr, nullptr, &link), CUDA_SUCCESS);
    return link;
}

CUresult add(CUlinkState link, CUjitInputType type, std::string data) {
    return cuLinkAddData(link, type, data.data(), data.size(), "input", 0, nullptr, nullptr);
}

/// The link's module; ends the link.
CUmodule finish(const Report& report, CUlinkState link) {
    void* image = nullptr;
    size_t size = 0;
    CUmodule module = nullptr;
    EXPECT_EQUAL(cuLinkComplete(link, &image, &size), CUDA_SUCCESS);
    EXPECT_EQUAL(cuModuleLoadData(&module, image), CUDA_SUCCESS);
    EXPECT_EQUAL(cuLinkDestroy(link), CUDA_SUCCESS);
    return module;
}

CUfunction find(const Report& report, CUmodule module, const char* name) {
    CUfunction function = nullptr;
    EXPECT_EQUAL(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return function;
}

std::string cubin() { return Cubin(75, 7).bytes(); }

/// An object of the host's with these bytes in a section.
std::string object(const std::string& section, const std::string& contents) {
    const std::string names = std::string("\0", 1) + section + std::string("\0.names\0", 8);
    Elf64_Ehdr header{};
    Elf64_Shdr sections[3] = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_type = ET_REL;
    header.e_shoff = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 3;
    header.e_shstrndx = 2;
    sections[1].sh_name = 1;
    sections[1].sh_type = SHT_PROGBITS;
    sections[1].sh_offset = sizeof header + sizeof sections;
    sections[1].sh_size = contents.size();
    sections[2].sh_type = SHT_STRTAB;
    sections[2].sh_offset = sections[1].sh_offset + contents.size();
    sections[2].sh_size = names.size();
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) +
           std::string(reinterpret_cast<const char*>(sections), sizeof sections) + contents + names;
}

}  // namespace

TEST_CASE("texts that are linked at run time make one module") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const CUlinkState link = begin(report);
              void* image = nullptr;
              size_t size = 0;
              EXPECT_EQUAL(cuLinkComplete(link, &image, &size), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_PTX, sample_ptx + std::string(1, '\0')), CUDA_SUCCESS);
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_PTX, second_text), CUDA_SUCCESS);
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_NVVM, "BC"), CUDA_ERROR_NOT_SUPPORTED);
              const CUmodule module = finish(report, link);
              for (const char* name : {"add", "other"})
                  find(report, module, name);
              EXPECT_EQUAL(cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_PTX, second_text), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}

TEST_CASE("a cubin, a fat binary and an object that are linked with a text keep what the host names") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const std::string fat = container(entry(2, 75, 0, cubin()));
              const struct {
                  CUjitInputType type;
                  std::string data;
              } inputs[] = {{CU_JIT_INPUT_CUBIN, cubin()},
                            {CU_JIT_INPUT_FATBINARY, fat},
                            {CU_JIT_INPUT_OBJECT, object(".nv_fatbin", fat)},
                            {CU_JIT_INPUT_OBJECT, object("__nv_relfatbin", fat)}};
              for (const auto& [type, data] : inputs) {
                  const CUlinkState link = begin(report);
                  EXPECT_EQUAL(add(link, type, data), CUDA_SUCCESS);
                  EXPECT_EQUAL(add(link, CU_JIT_INPUT_PTX, second_text), CUDA_SUCCESS);
                  EXPECT_EQUAL(add(link, CU_JIT_INPUT_LIBRARY, "!<arch>\n"), CUDA_SUCCESS);
                  const CUmodule module = finish(report, link);
                  find(report, module, "other");
                  const CUfunction kernel = find(report, module, "kernel");
                  int threads = 0, shared = 0, value = 0;
                  size_t offset = 0, size = 0;
                  EXPECT_EQUAL(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel),
                               CUDA_SUCCESS);
                  EXPECT_EQUAL(threads, 256);
                  EXPECT_EQUAL(cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel), CUDA_SUCCESS);
                  EXPECT_EQUAL(shared, 512);
                  EXPECT_EQUAL(cuFuncGetParamInfo(kernel, 1, &offset, &size), CUDA_SUCCESS);
                  EXPECT_EQUAL(offset, size_t{8});
                  EXPECT_EQUAL(size, size_t{4});
                  CUdeviceptr answer = 0;
                  EXPECT_EQUAL(cuModuleGetGlobal(&answer, &size, module, "answer"), CUDA_SUCCESS);
                  EXPECT_EQUAL(size, size_t{4});
                  EXPECT_EQUAL(cuMemcpyDtoH(&value, answer, 4), CUDA_SUCCESS);
                  EXPECT_EQUAL(value, 42);
              }
          }) == "");
}

TEST_CASE("a lone cubin is linked to itself") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const CUlinkState link = begin(report);
              void* image = nullptr;
              size_t size = 0;
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_CUBIN, cubin()), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLinkComplete(link, &image, &size), CUDA_SUCCESS);
              EXPECT(std::string(static_cast<char*>(image), size) == cubin());
          }) == "");
}

TEST_CASE("what can't be linked is refused, and the link goes on without it") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const CUlinkState link = begin(report);
              const std::string fat = container(entry(2, 75, 0, cubin()));
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_CUBIN, fat), CUDA_ERROR_INVALID_IMAGE);
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_CUBIN, Cubin(80, 7).bytes()), CUDA_ERROR_NO_BINARY_FOR_GPU);
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_FATBINARY, fat.substr(0, 60)), CUDA_ERROR_INVALID_IMAGE);
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_OBJECT, object(".text", fat)), CUDA_ERROR_INVALID_IMAGE);
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_LIBRARY, fat), CUDA_ERROR_INVALID_IMAGE);
              const std::string whole = object(".nv_fatbin", fat);
              for (size_t size = 1; size < whole.size(); size += 7)
                  EXPECT_EQUAL(add(link, CU_JIT_INPUT_OBJECT, whole.substr(0, size)), CUDA_ERROR_INVALID_IMAGE);
              const std::string cut_off = container(entry(2, 75, 0x2000, "compressed")) + std::string(64, 'x');
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_OBJECT, object(".nv_fatbin", cut_off)), CUDA_ERROR_INVALID_IMAGE);
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_PTX, second_text), CUDA_SUCCESS);
              const CUmodule module = finish(report, link);
              find(report, module, "other");
              CUfunction kernel = nullptr;
              EXPECT_EQUAL(cuModuleGetFunction(&kernel, module, "kernel"), CUDA_ERROR_NOT_FOUND);
          }) == "");
}

TEST_CASE("a fat binary that can't be read makes the linked image one that has any name") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const CUlinkState link = begin(report);
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_FATBINARY, container(entry(2, 75, 0x2000, "compressed"))),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(add(link, CU_JIT_INPUT_PTX, second_text), CUDA_SUCCESS);
              const CUmodule module = finish(report, link);
              for (const char* name : {"other", "kernel"})
                  find(report, module, name);
          }) == "");
}
