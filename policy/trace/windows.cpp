// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/windows.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>

namespace cuslice::trace {

namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers don't know

// As in <linux/magic.h>, whose older ones lack some.
constexpr uint64_t kExt = 0xEF53, kXfs = 0x58465342, kTmpfs = 0x01021994, kOverlay = 0x794c7630;

// On no stack: threads may have little.
template <char Filler>
struct Page {
    constexpr Page() {
        for (char& byte : bytes)
            byte = Filler;
    }
    char bytes[4096] = {};
};
constexpr Page<'\n'> kLines;
constexpr Page<'\0'> kZeros;

// Everywhere the same, so that whatever a call leaves over is any of it.
bool fill(int file, char filler, uint64_t bytes) {
    constexpr size_t kPieces = 64;
    const char* const page = filler == '\n' ? kLines.bytes : kZeros.bytes;
    while (bytes != 0) {
        iovec pieces[kPieces];
        size_t count = 0;
        for (uint64_t left = bytes; left != 0 && count < kPieces; count++) {
            const size_t piece = std::min<uint64_t>(left, sizeof kLines.bytes);
            pieces[count] = {const_cast<char*>(page), piece};
            left -= piece;
        }
        const ssize_t written = writev(file, pieces, static_cast<int>(count));
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes -= static_cast<uint64_t>(written);
    }
    return true;
}

}  // namespace

bool Windows::suits(int file) {
    struct statfs system {};
    if (fstatfs(file, &system) != 0)
        return false;
    const auto type = static_cast<uint32_t>(system.f_type);
    if (type == kExt || type == kXfs || type == kTmpfs)
        return true;
    // Figures are those of the system beneath. btrfs, alone among those that may be there, counts no files.
    return type == kOverlay && system.f_files != 0;
}

size_t Windows::Window::bytes() const {
    return end.load(std::memory_order_relaxed) - begin.load(std::memory_order_relaxed) + kMostAtOnce;
}

bool Windows::Window::is_over() const { return claimed != 0 && written.load(std::memory_order_acquire) == claimed; }

void Windows::Window::unmap() {
    munmap(base.load(std::memory_order_relaxed), bytes());
    mapped = false;
    claimed = 0;
}

bool Windows::has_room() const {
    const Window* const window = current_.load(std::memory_order_acquire);
    return window && window->has(offset_.load(std::memory_order_acquire));
}

// Twice as long each time, so that a program that allocates little has little.
uint64_t Windows::next_end() const { return end_ + std::clamp(end_, kFirst, kLargest); }

// Null: everywhere a thread is still about to write what it has claimed.
Windows::Window* Windows::free_window() {
    Window* found = nullptr;
    for (Window& window : windows_) {
        if (window.mapped && window.is_over())
            window.unmap();
        if (!window.mapped)
            found = &window;
    }
    return found;
}

bool Windows::extend(int file, char filler) {
    const uint64_t end = next_end();
    const uint64_t used = offset_.load(std::memory_order_relaxed);
    // Claims are none while the last window has no room, so this is all of them in it.
    if (Window* const last = current_.load(std::memory_order_relaxed))
        last->claimed = used - last->first;
    Window* const window = free_window();
    if (!window)
        return errno = EBUSY, false;
    const uint64_t size = end + kMostAtOnce;
    if (!fill(file, filler, size - std::max(filled_, used)))
        return false;
    filled_ = size;
    void* const base = mmap(nullptr, size - end_, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(end_));
    if (base == MAP_FAILED)
        return false;
    // All pages at once are cheaper than a fault for each. Where the kernel doesn't know how, they come one by one.
    if (madvise(base, size - end_, kPopulateWrite) != 0 && errno == EFAULT) {
        munmap(base, size - end_);
        return errno = EIO, false;
    }
    window->first = used;
    window->mapped = true;
    window->written.store(0, std::memory_order_relaxed);
    window->base.store(static_cast<char*>(base), std::memory_order_relaxed);
    window->begin.store(end_, std::memory_order_release);
    window->end.store(end, std::memory_order_release);
    end_ = end;
    current_.store(window, std::memory_order_release);
    return true;
}

// Bytes that were claimed are still written: they stay mapped, and in the file.
uint64_t Windows::close() { return offset_.exchange(kClosed, std::memory_order_acq_rel); }

}  // namespace cuslice::trace
