// SPDX-License-Identifier: Apache-2.0
// Finds out which memory can be handed to another process, and what that process finds there; whether a location may
// be named twice in cuMemSetAccess; and whom NVML lists with exported memory (exported.h). The process that opens is
// forked before CUDA is initialised. One row of Markdown a question.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "lab/hardware/driver.h"
#include "lab/hardware/exported.h"
#include "lab/hardware/text.h"

using namespace cuslice::check;

namespace {

struct Question {
    CUipcMemHandle handle;
    unsigned expected;
};

void row(const std::string& question, const std::string& answer) {
    std::printf("| %s | %s |\n", question.c_str(), answer.c_str());
    std::fflush(stdout);
}

/// The other process: opens each handle that it is sent and answers what it found.
[[noreturn]] void open_handles(int from, int to) {
    Gpu gpu = find_gpu();
    open_context(gpu);
    Question question;
    while (read(from, &question, sizeof question) == sizeof question) {
        CUdeviceptr memory = 0;
        unsigned value = 0;
        char answer[128] = {};
        CUresult result = CU(cuIpcOpenMemHandle_v2)(&memory, question.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
        if (result == CUDA_SUCCESS) {
            size_t size = 0;
            CUdeviceptr base = 0;
            result = CU(cuMemcpyDtoH_v2)(&value, memory, sizeof value);
            CU(cuMemGetAddressRange_v2)(&base, &size, memory);
            std::snprintf(answer, sizeof answer, "opened, %s, range %s, offset %llu",
                          result != CUDA_SUCCESS                  ? name_of(result)
                          : value == question.expected            ? "at the pointer's own bytes"
                          : value == (question.expected & 0xff00) ? "at the base of the block"
                                                                  : "other bytes",
                          mib(size).c_str(), memory - base);
            CU(cuIpcCloseMemHandle)(memory);
        } else {
            std::snprintf(answer, sizeof answer, "not opened: %s", name_of(result));
        }
        if (write(to, answer, sizeof answer) != sizeof answer)
            break;
    }
    std::_Exit(0);
}

class OtherProcess {
  public:
    OtherProcess() {
        int there[2], back[2];
        if (pipe(there) != 0 || pipe(back) != 0)
            std::exit(1);
        if (fork() == 0) {
            close(there[1]);
            close(back[0]);
            open_handles(there[0], back[1]);
        }
        close(there[0]);
        close(back[1]);
        to_ = there[1];
        from_ = back[0];
    }
    ~OtherProcess() {
        close(to_);
        wait(nullptr);
    }

    /// Exports `memory`, whose first word is `expected`, and tells what the other process made of it.
    void ask(const std::string& what, CUdeviceptr memory, unsigned expected) {
        Question question{};
        question.expected = expected;
        const CUresult exported = CU(cuIpcGetMemHandle)(&question.handle, memory);
        if (exported != CUDA_SUCCESS)
            return row(what, std::string("not exported: ") + name_of(exported));
        char answer[128] = "the other process ended";
        if (write(to_, &question, sizeof question) == sizeof question) {
            const ssize_t count = read(from_, answer, sizeof answer);
            if (count <= 0)
                std::strcpy(answer, "the other process ended");
        }
        row(what, answer);
    }

  private:
    int to_ = -1, from_ = -1;
};

void ask_virtual_memory(const Gpu& gpu, OtherProcess& other) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {gpu.device}};
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    size_t size = 0;
    CUresult result = CU(cuMemGetAllocationGranularity)(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (result != CUDA_SUCCESS)
        return row("cuMemGetAllocationGranularity", name_of(result));
    row("granularity of cuMemCreate", mib(size));
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = 0;
    result = CU(cuMemCreate)(&handle, size, &properties, 0);
    if (result != CUDA_SUCCESS) {
        row("cuMemCreate of memory that can be exported", name_of(result));
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
        result = CU(cuMemCreate)(&handle, size, &properties, 0);
    }
    if (result != CUDA_SUCCESS)
        return row("cuMemCreate", name_of(result));
    MUST(cuMemAddressReserve, &address, size, 0, 0, 0);
    MUST(cuMemMap, address, size, 0, handle, 0);
    CUmemAccessDesc access[2] = {};
    for (CUmemAccessDesc& one : access) {
        one.location = properties.location;
        one.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    row("cuMemSetAccess with the same location twice", name_of(CU(cuMemSetAccess)(address, size, access, 2)));
    access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    row("the same with different rights", name_of(CU(cuMemSetAccess)(address, size, access, 2)));
    unsigned long long rights = 0;
    MUST(cuMemGetAccess, &rights, &access[0].location, address);
    row("the rights that remain", rights == 3 ? "read and write" : rights == 1 ? "read" : std::to_string(rights));
    result = CU(cuMemSetAccess)(address, size, access, 1);
    row("cuMemSetAccess with one location", name_of(result));
    if (result == CUDA_SUCCESS && CU(cuMemsetD32_v2)(address, 0x7a07, 1) == CUDA_SUCCESS)
        other.ask("cuIpcGetMemHandle of memory of cuMemCreate", address, 0x7a07);
}

}  // namespace

int main() {
    std::printf("| question | answer |\n|---|---|\n");
    std::fflush(stdout);
    OtherProcess other;
    Maker maker;
    Gpu gpu = find_gpu();
    open_context(gpu);

    CUdeviceptr block = 0, pooled = 0;
    MUST(cuMemAlloc_v2, &block, 4 << 20);
    MUST(cuMemsetD32_v2, block, 0x7a00, 1 << 20);
    MUST(cuMemsetD32_v2, block + (1 << 20), 0x7a01, 1);
    MUST(cuCtxSynchronize);
    other.ask("cuIpcGetMemHandle of a block of cuMemAlloc", block, 0x7a00);
    other.ask("of a pointer 1 MiB into it", block + (1 << 20), 0x7a01);
    if (CU(cuMemAllocAsync)(&pooled, 1 << 20, nullptr) == CUDA_SUCCESS) {
        MUST(cuStreamSynchronize, nullptr);
        other.ask("of memory of cuMemAllocAsync", pooled, 0x7a02);
    }
    ask_virtual_memory(gpu, other);
    ask_exported(gpu, maker);
}
