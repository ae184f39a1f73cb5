// SPDX-License-Identifier: Apache-2.0
#include "lab/hardware/exported.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "lab/hardware/driver.h"
#include "lab/hardware/management.h"
#include "lab/hardware/text.h"

namespace cuslice::check {

namespace {

constexpr size_t kSize = 64 << 20;
constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUmemGenericAllocationHandle make_piece(const Gpu& gpu) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {gpu.device}};
    properties.requestedHandleTypes = kDescriptor;
    CUmemGenericAllocationHandle handle = 0;
    return CU(cuMemCreate)(&handle, kSize, &properties, 0) == CUDA_SUCCESS ? handle : 0;
}

int export_piece(CUmemGenericAllocationHandle handle) {
    int file = -1;
    return handle && CU(cuMemExportToShareableHandle)(&file, handle, kDescriptor, 0) == CUDA_SUCCESS ? file : -1;
}

CUmemGenericAllocationHandle import_piece(int file) {
    CUmemGenericAllocationHandle handle = 0;
    void* const descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(file));
    return CU(cuMemImportFromShareableHandle)(&handle, descriptor, kDescriptor) == CUDA_SUCCESS ? handle : 0;
}

bool send_file(int socket, int file) {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof file)] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

int receive_file(int socket) {
    char byte = 0;
    int file = -1;
    iovec data{&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof file)] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    if (recvmsg(socket, &message, 0) != 1)
        return -1;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message))
        std::memcpy(&file, CMSG_DATA(header), sizeof file);
    return file;
}

[[noreturn]] void serve(int socket) {
    char byte = 0;
    if (read(socket, &byte, 1) != 1)
        std::_Exit(0);
    Gpu gpu = find_gpu();
    open_context(gpu);
    const int file = export_piece(make_piece(gpu));
    if (file < 0 || !send_file(socket, file))
        std::_Exit(1);
    close(file);
    static_cast<void>(read(socket, &byte, 1));
    std::_Exit(0);
}

/// NVML's figures less those that it had at first, a row each.
class Figures {
  public:
    explicit Figures(const Gpu& gpu) : gpu_(gpu) {}
    void row(const char* what) const {
        std::printf("| %s | this process %s, in use %s |\n", what,
                    mib_between(process_bytes(getpid(), gpu_.uuid), own_).c_str(),
                    mib_between(used_bytes(), used_).c_str());
        std::fflush(stdout);
    }

  private:
    const Gpu& gpu_;
    const std::optional<uint64_t> own_ = process_bytes(getpid(), gpu_.uuid), used_ = used_bytes();
};

void ask_mapped(const Gpu& gpu) {
    const Figures figures(gpu);
    const CUmemGenericAllocationHandle handle = make_piece(gpu);
    const int file = export_piece(handle);
    if (file < 0)
        return void(std::printf("| exported memory of cuMemCreate | can't be made |\n"));
    CUdeviceptr address = 0;
    MUST(cuMemAddressReserve, &address, kSize, 0, 0, 0);
    MUST(cuMemMap, address, kSize, 0, handle, 0);
    figures.row("exported memory of cuMemCreate, 64 MiB, mapped");
    MUST(cuMemRelease, handle);
    figures.row("the same, its handle released and mapped still");
    MUST(cuMemUnmap, address, kSize);
    figures.row("unmapped, with a descriptor");
    close(file);
    figures.row("and without");
}

void ask_second_handle(const Gpu& gpu) {
    const Figures figures(gpu);
    const CUmemGenericAllocationHandle handle = make_piece(gpu);
    const int file = export_piece(handle);
    const CUmemGenericAllocationHandle second = file < 0 ? 0 : import_piece(file);
    if (!second)
        return void(std::printf("| an import where it was made | fails |\n"));
    std::printf("| an import where it was made | %s |\n", second == handle ? "the same handle" : "another handle");
    MUST(cuMemRelease, handle);
    figures.row("once the first handle is released");
    MUST(cuMemRelease, second);
    close(file);
    figures.row("and the second");
}

void ask_after_maker(const Gpu& gpu, Maker& maker) {
    const int file = maker.make();
    const Figures figures(gpu);
    const CUmemGenericAllocationHandle handle = file < 0 ? 0 : import_piece(file);
    if (!handle)
        return void(std::printf("| exported memory of another process | can't be imported |\n"));
    close(file);
    figures.row("exported memory of another process, 64 MiB, imported");
    maker.end();
    figures.row("its maker has ended, and its context");
    MUST(cuMemRelease, handle);
    figures.row("released");
}

}  // namespace

Maker::Maker() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        std::exit(1);
    pid_ = fork();
    if (pid_ == 0) {
        close(ends[0]);
        serve(ends[1]);
    }
    close(ends[1]);
    socket_ = ends[0];
}

Maker::~Maker() { end(); }

int Maker::make() const {
    const char byte = 0;
    return write(socket_, &byte, 1) == 1 ? receive_file(socket_) : -1;
}

void Maker::end() {
    if (socket_ < 0)
        return;
    close(socket_);
    socket_ = -1;
    waitpid(pid_, nullptr, 0);
}

void ask_exported(const Gpu& gpu, Maker& maker) {
    ask_mapped(gpu);
    ask_second_handle(gpu);
    ask_after_maker(gpu, maker);
}

}  // namespace cuslice::check
