#include "virtual_gpu/cache/ipc_blocks.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace cuslice {

namespace {

constexpr char kMagic[16] = "cuslice block 1";

// What the 64 bytes of a handle of ours are.
struct Token {
    char magic[16];
    std::uint64_t nonce;  // what the file begins with: another process may have the pid by now
    std::int32_t pid, descriptor;
    std::uint32_t slot, unused;
    std::uint64_t offset, bytes;
};
static_assert(sizeof(Token) <= sizeof(CUipcMemHandle));

constexpr off_t place_of(std::uint32_t slot) {
    return static_cast<off_t>(sizeof(std::uint64_t) + slot * sizeof(CUipcMemHandle));
}

int make_file() { return static_cast<int>(syscall(SYS_memfd_create, "cuslice", MFD_CLOEXEC)); }

std::uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

class SavedErrno {
  public:
    ~SavedErrno() { errno = saved_; }

  private:
    int saved_ = errno;
};

}  // namespace

bool IpcBlocks::give(CUipcMemHandle* handle, std::uint64_t offset, std::uint64_t bytes) {
    const SavedErrno saved;
    LockGuard lock(mutex_);
    if (file_ < 0) {
        file_ = make_file();
        nonce_ = now() ^ static_cast<std::uint64_t>(getpid()) << 48;
        given_.release();
        if (file_ < 0 || pwrite(file_, &nonce_, sizeof nonce_, 0) != sizeof nonce_) return false;
    }
    // One place for each segment's handle, however many of its blocks are given.
    std::uint32_t slot = 0;
    while (slot < given_.size() && std::memcmp(&given_[slot], handle, sizeof *handle) != 0) slot++;
    if (slot == given_.size()) {
        if (pwrite(file_, handle, sizeof *handle, place_of(slot)) != sizeof *handle) return false;
        if (!given_.push_back(*handle)) return false;
    }
    Token token{};
    std::memcpy(token.magic, kMagic, sizeof kMagic);
    token.nonce = nonce_;
    token.pid = getpid();
    token.descriptor = file_;
    token.slot = slot;
    token.offset = offset;
    token.bytes = bytes;
    *handle = {};
    std::memcpy(handle, &token, sizeof token);
    return true;
}

IpcBlocks::Given IpcBlocks::read(const CUipcMemHandle& handle) {
    Given given;
    Token token;
    std::memcpy(&token, &handle, sizeof token);
    given.ours = std::memcmp(token.magic, kMagic, sizeof kMagic) == 0;
    given.handle = handle;
    if (!given.ours) return given;
    const SavedErrno saved;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", token.pid, token.descriptor);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // whatever lies there by now
    if (file < 0) return given;
    std::uint64_t nonce = 0;
    given.readable = pread(file, &nonce, sizeof nonce, 0) == sizeof nonce && nonce == token.nonce &&
                     pread(file, &given.handle, sizeof given.handle, place_of(token.slot)) == sizeof given.handle;
    close(file);
    given.offset = token.offset;
    given.bytes = token.bytes;
    return given;
}

IpcBlocks::Open* IpcBlocks::find(CUdeviceptr address) {
    for (Open& open : open_)
        if (open.address == address) return &open;
    return nullptr;
}

bool IpcBlocks::opened(CUdeviceptr address, std::uint64_t offset, std::uint64_t bytes) {
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
    if (!open) return address;
    const CUdeviceptr base = address - open->offset;
    if (--open->uses == 0) open_.remove_at(static_cast<std::size_t>(open - open_.begin()));
    return base;
}

std::uint64_t IpcBlocks::bytes_at(CUdeviceptr address) {
    LockGuard lock(mutex_);
    const Open* open = find(address);
    return open ? open->bytes : 0;
}

}  // namespace cuslice
