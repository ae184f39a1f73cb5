// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/cache/ipc_blocks.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace cuslice {

namespace {

constexpr char kMagic[16] = "cuslice block 1";

// Layout of the 64 bytes of a handle of ours.
struct Token {
    char magic[16];
    uint64_t nonce;  // what the file begins with: another process may have the pid by now
    int32_t pid, descriptor;
    uint32_t slot, unused;
    uint64_t offset, bytes;
};
static_assert(sizeof(Token) <= sizeof(CUipcMemHandle));

constexpr off_t offset_of(uint32_t slot) {
    return static_cast<off_t>(sizeof(uint64_t) + slot * sizeof(CUipcMemHandle));
}

uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

class SavedErrno {
  public:
    ~SavedErrno() { errno = saved_; }

  private:
    int saved_ = errno;
};

}  // namespace

bool IpcBlocks::make_file() {
    if (!file_may_have(sizeof(Page)))
        return false;
    const int file =
        keep_descriptor(static_cast<int>(syscall(SYS_memfd_create, "cuslice", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
    if (file < 0)
        return false;
    // All of its space first, and nobody may cut it off: a page that isn't there would be a SIGBUS.
    const bool whole = posix_fallocate(file, 0, sizeof(Page)) == 0;
    fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK);
    void* const memory = whole ? mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    auto* const page = static_cast<Page*>(memory);
    if (memory == MAP_FAILED || !files_.push_back({file, identity_of(file), page, 0})) {
        if (memory != MAP_FAILED)
            munmap(memory, sizeof(Page));
        close(file);
        return false;
    }
    madvise(memory, sizeof(Page), MADV_DONTFORK);
    page->nonce = now() ^ static_cast<uint64_t>(getpid()) << 48 ^ reinterpret_cast<uintptr_t>(page) << 12;
    return true;
}

// One place for each segment's handle, however many of its blocks are given.
IpcBlocks::File* IpcBlocks::place_of(const CUipcMemHandle& handle, uint32_t* slot) {
    for (size_t i = files_.size(); i-- > 0;) {
        if (files_[i].is_open())
            continue;
        munmap(files_[i].page, sizeof(Page));
        files_.remove_at(i);
    }
    for (File& file : files_)
        for (*slot = 0; *slot < file.used; (*slot)++)
            if (std::memcmp(&file.page->handles[*slot], &handle, sizeof handle) == 0)
                return &file;
    File* last = files_.size() ? files_.end() - 1 : nullptr;
    if (!last || last->used == Page::kSlots) {
        if (!make_file())
            return nullptr;
        last = files_.end() - 1;
    }
    *slot = last->used++;
    last->page->handles[*slot] = handle;
    return last;
}

bool IpcBlocks::give(CUipcMemHandle* handle, uint64_t offset, uint64_t bytes) {
    const SavedErrno saved;
    LockGuard lock(mutex_);
    Token token{};
    const File* const file = place_of(*handle, &token.slot);
    if (!file)
        return false;
    std::memcpy(token.magic, kMagic, sizeof kMagic);
    token.nonce = file->page->nonce;
    token.pid = getpid();
    token.descriptor = file->descriptor;
    token.offset = offset;
    token.bytes = bytes;
    *handle = {};
    std::memcpy(handle, &token, sizeof token);
    return true;
}

void IpcBlocks::forget() {
    LockGuard lock(mutex_);
    for (const File& file : files_)
        if (file.is_open())
            close(file.descriptor);
    files_.release();
}

IpcBlocks::Given IpcBlocks::read(const CUipcMemHandle& handle) {
    Given given;
    Token token;
    std::memcpy(&token, &handle, sizeof token);
    given.ours = std::memcmp(token.magic, kMagic, sizeof kMagic) == 0;
    given.handle = handle;
    if (!given.ours)
        return given;
    const SavedErrno saved;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", token.pid, token.descriptor);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // whatever lies there by now
    if (file < 0)
        return given;
    uint64_t nonce = 0;
    given.readable = pread(file, &nonce, sizeof nonce, 0) == sizeof nonce && nonce == token.nonce &&
                     pread(file, &given.handle, sizeof given.handle, offset_of(token.slot)) == sizeof given.handle;
    close(file);
    given.offset = token.offset;
    given.bytes = token.bytes;
    return given;
}

IpcBlocks::Open* IpcBlocks::find(CUdeviceptr address) {
    for (Open& open : open_)
        if (open.address == address)
            return &open;
    return nullptr;
}

bool IpcBlocks::opened(CUdeviceptr address, uint64_t offset, uint64_t bytes) {
    LockGuard lock(mutex_);
    if (Open* open = find(address)) {
        open->uses++;
        return true;
    }
    return open_.push_back({address, offset, bytes, 1});
}

CUdeviceptr IpcBlocks::closed(CUdeviceptr address) {
    LockGuard lock(mutex_);
    Open* open = find(address);
    if (!open)
        return address;
    const CUdeviceptr base = address - open->offset;
    if (--open->uses == 0)
        open_.remove_at(static_cast<size_t>(open - open_.begin()));
    return base;
}

uint64_t IpcBlocks::bytes_at(CUdeviceptr address) {
    LockGuard lock(mutex_);
    const Open* open = find(address);
    return open ? open->bytes : 0;
}

}  // namespace cuslice
