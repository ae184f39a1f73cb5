// SPDX-License-Identifier: Apache-2.0
// Memory of another process.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tests/preload/guest/guest.h"

namespace guest {
namespace {

template <typename Handle>
std::string to_hex(const Handle& handle) {
    std::string text;
    char digits[3];
    for (const char byte : handle.reserved) {
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
        text += digits;
    }
    return text;
}

template <typename Handle>
Handle from_hex(const std::string& text) {
    Handle handle{};
    for (size_t i = 0; i < sizeof handle.reserved; i++)
        handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
    return handle;
}

}  // namespace

void add_sharing_commands(Commands& commands) {
    // ipcget NAME: the handle
    commands["ipcget"] = [](Program& p, const Words& w) {
        CUipcMemHandle handle{};
        const CUresult result = p.driver.cuIpcGetMemHandle(&handle, p.blocks.at(w.at(0)));
        return answer(result) + " " + to_hex(handle);
    };
    // bufferid NAME: the number that no other allocation has or had
    commands["bufferid"] = [](Program& p, const Words& w) {
        unsigned long long id = 0;
        const CUresult result =
            p.driver.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p.blocks.at(w.at(0)));
        return answer(result, id);
    };
    // dmabuf NAME BYTES
    commands["dmabuf"] = [](Program& p, const Words& w) {
        int file = -1;
        return answer(p.driver.cuMemGetHandleForAddressRange(&file, p.blocks.at(w.at(0)), number(w.at(1)),
                                                             CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    };
    // syncmemops NAME
    commands["syncmemops"] = [](Program& p, const Words& w) {
        const unsigned on = 1;
        return answer(p.driver.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p.blocks.at(w.at(0))));
    };
    // tokens NAME: by which a kernel module finds the block's pages
    commands["tokens"] = [](Program& p, const Words& w) {
        CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens{};
        return answer(p.driver.cuPointerGetAttribute(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, p.blocks.at(w.at(0))));
    };
    // ipcopen NAME HANDLE
    commands["ipcopen"] = [](Program& p, const Words& w) {
        CUdeviceptr block = 0;
        const CUresult result = p.driver.cuIpcOpenMemHandle_v2(&block, from_hex<CUipcMemHandle>(w.at(1)), 1);
        if (result == CUDA_SUCCESS)
            p.blocks[w.at(0)] = block;
        return answer(result);
    };
    commands["ipcclose"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuIpcCloseMemHandle(p.blocks.at(w.at(0))));
    };
    // event NAME: one that other processes can open
    commands["event"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuEventCreate(&p.events[w.at(0)], CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    };
    // eventget NAME: the handle
    commands["eventget"] = [](Program& p, const Words& w) {
        CUipcEventHandle handle{};
        const CUresult result = p.driver.cuIpcGetEventHandle(&handle, p.events.at(w.at(0)));
        return answer(result) + " " + to_hex(handle);
    };
    // eventopen NAME HANDLE
    commands["eventopen"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuIpcOpenEventHandle(&p.events[w.at(0)], from_hex<CUipcEventHandle>(w.at(1))));
    };
    commands["record"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuEventRecord(p.events.at(w.at(0)), nullptr));
    };
    // await NAME: in the default stream
    commands["await"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuStreamWaitEvent(nullptr, p.events.at(w.at(0)), 0));
    };
    // export NAME [close]: where another process finds the descriptor
    commands["export"] = [](Program& p, const Words& w) {
        int file = -1;
        const CUresult result = p.driver.cuMemExportToShareableHandle(&file, p.pieces.at(w.at(0)),
                                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        p.exported[w.at(0)] = file;
        if (w.size() > 1 && file >= 0)
            close(file);
        return answer(result) + " /proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
    };
    // unexport NAME: closes the last descriptor
    commands["unexport"] = [](Program& p, const Words& w) {
        return answer(close(p.exported.at(w.at(0))) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    };
    // import NAME DESCRIPTOR
    commands["import"] = [](Program& p, const Words& w) {
        const int file = open(w.at(1).c_str(), O_RDWR | O_CLOEXEC);
        CUmemGenericAllocationHandle handle = 0;
        const CUresult result = p.driver.cuMemImportFromShareableHandle(
            &handle, reinterpret_cast<void*>(static_cast<intptr_t>(file)), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        close(file);
        if (result == CUDA_SUCCESS)
            p.pieces[w.at(0)] = handle;
        return answer(result);
    };
    // external NAME DESCRIPTOR BYTES: as external memory, and all of it mapped; the buffer has the name too
    commands["external"] = [](Program& p, const Words& w) {
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc{};
        desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
        desc.handle.fd = open(w.at(1).c_str(), O_RDWR | O_CLOEXEC);
        desc.size = number(w.at(2));
        CUexternalMemory memory = nullptr;
        CUresult result = p.driver.cuImportExternalMemory(&memory, &desc);
        if (result != CUDA_SUCCESS)
            return answer(result);
        p.externals[w.at(0)] = memory;
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC whole{};
        whole.size = desc.size;
        CUdeviceptr block = 0;
        result = p.driver.cuExternalMemoryGetMappedBuffer(&block, memory, &whole);
        if (result == CUDA_SUCCESS)
            p.blocks[w.at(0)] = block;
        return answer(result);
    };
    commands["unexternal"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuDestroyExternalMemory(p.externals.at(w.at(0))));
    };
}

}  // namespace guest
