#pragma once
#include <sys/mman.h>

#include <cerrno>
#include <new>
#include <type_traits>

namespace cuslice {

// A large value that a slow path needs for a moment, in memory of the kernel's: a host's threads may have stacks of 32
// KiB, of which the driver wants most. False if the kernel gives none.
template <typename T>
class Scratch {
    static_assert(std::is_trivially_destructible_v<T>);

  public:
    Scratch() {
        const int saved_errno = errno;
        void* const memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        errno = saved_errno;
        value_ = memory == MAP_FAILED ? nullptr : new (memory) T;
    }
    ~Scratch() {
        if (value_) munmap(static_cast<void*>(value_), sizeof(T));
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    explicit operator bool() const { return value_ != nullptr; }
    T& operator*() const { return *value_; }
    T* operator->() const { return value_; }

  private:
    T* value_;
};

}  // namespace cuslice
