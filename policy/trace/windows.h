// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuslice::trace {

/// The end of a file that grows, mapped a window at a time. Threads claim its bytes in order, without a lock, and copy
/// into them, so that a row costs no call of the kernel and is in the file however the process ends.
///
/// A window's space is taken by writing what is no row into it (`filler`) before it is mapped: a store into it never
/// meets a full disk, which would end the program by SIGBUS. A window is unmapped once all that was claimed in it is
/// written. claim() and Claim::done() are for any thread; the others one at a time.
class Windows {
    struct Window;

  public:
    /// More is never claimed at once: a claim may begin at a window's last byte.
    static constexpr size_t kMostAtOnce = 4096;
    static constexpr uint64_t kFirst = 64 << 10, kLargest = 1 << 20;

    class Claim {
      public:
        char* to() const { return to_; }
        /// After the last store.
        void done() const { window_->written.fetch_add(bytes_, std::memory_order_release); }

      private:
        friend class Windows;
        char* to_ = nullptr;
        size_t bytes_ = 0;
        Window* window_ = nullptr;
    };

    /// True if the file's system takes space when a file is written, so that nothing it does later can lack any: ext,
    /// XFS, tmpfs, and overlayfs over those. Systems that copy what is written again, and network file systems, don't.
    static bool suits(int file);

    /// From now on bytes can be claimed behind the first `used`, once there is a window. The file has no more than
    /// those.
    void open(uint64_t used) { offset_.store(used, std::memory_order_release); }
    bool is_open() const { return offset_.load(std::memory_order_acquire) < kClosed; }

    /// False: there is no window with room.
    bool claim(size_t bytes, Claim& claim) {
        uint64_t at = offset_.load(std::memory_order_acquire);
        for (;;) {
            Window* const window = current_.load(std::memory_order_acquire);
            if (!window || !window->has(at)) {
                const uint64_t now = offset_.load(std::memory_order_acquire);
                if (now == at)
                    return false;
                at = now;
                continue;
            }
            // Before the claim: while `at` is the end of what was claimed, its window is nobody else's.
            claim.to_ = window->at(at);
            claim.window_ = window;
            claim.bytes_ = bytes;
            if (offset_.compare_exchange_weak(at, at + bytes, std::memory_order_acq_rel, std::memory_order_acquire))
                return true;
        }
    }
    bool has_room() const;

    /// The file's size with one more window.
    uint64_t next_size() const { return next_end() + kMostAtOnce; }
    /// Maps one more window of the file, which is appended to. False, with errno, if there is no space, or memory.
    bool extend(int file, char filler);

    /// Ends all claims. How many bytes of the file were claimed; the rest of it can be cut off.
    uint64_t close();

  private:
    static constexpr uint64_t kClosed = 1ull << 63;
    static constexpr unsigned kWindows = 16;

    // Claims begin in [begin, end), and end in what is mapped behind it.
    struct alignas(64) Window {
        std::atomic<uint64_t> begin{0}, end{0};
        std::atomic<char*> base{nullptr};  // of `begin`
        uint64_t first = 0;                // where the first claim begins
        uint64_t claimed = 0;              // bytes, once there is a later window
        bool mapped = false;
        alignas(64) std::atomic<uint64_t> written{0};

        bool has(uint64_t offset) const {
            return offset >= begin.load(std::memory_order_acquire) && offset < end.load(std::memory_order_acquire);
        }
        char* at(uint64_t offset) const {
            return base.load(std::memory_order_relaxed) + (offset - begin.load(std::memory_order_relaxed));
        }
        size_t bytes() const;
        bool is_over() const;
        void unmap();
    };
    uint64_t next_end() const;
    Window* free_window();

    std::atomic<uint64_t> offset_{kClosed};
    std::atomic<Window*> current_{nullptr};
    alignas(64) uint64_t end_ = 0;  // of the last window
    uint64_t filled_ = 0;           // the file's size
    Window windows_[kWindows];
};

}  // namespace cuslice::trace
