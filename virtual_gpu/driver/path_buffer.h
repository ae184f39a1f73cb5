#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace cuslice {

// Room for a path. It is the kernel's memory: a thread of the program may have 16 KiB of stack, and the program's
// malloc may not be ready for us.
class PathBuffer {
  public:
    static constexpr std::size_t kSize = 4096;  // PATH_MAX

    PathBuffer() {
        void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory != MAP_FAILED) text_ = static_cast<char*>(memory);
    }
    ~PathBuffer() {
        if (text_) munmap(text_, kSize);
    }
    PathBuffer(const PathBuffer&) = delete;
    PathBuffer& operator=(const PathBuffer&) = delete;

    // False if it doesn't fit.
    bool set(const char* text) { return join(text, "", ""); }
    bool join(const char* first, const char* second, const char* third) {
        const int length = text_ ? std::snprintf(text_, kSize, "%s%s%s", first, second, third) : -1;
        return length >= 0 && static_cast<std::size_t>(length) < kSize;
    }
    const char* text() const { return text_; }

  private:
    char* text_ = nullptr;
};

}  // namespace cuslice
