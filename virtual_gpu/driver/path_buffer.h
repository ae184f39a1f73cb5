#pragma once
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "virtual_gpu/driver/scratch.h"

namespace cuslice {

// Room for a path, which is not the stack's, of which a thread of the program may have 16 KiB, nor malloc's, which may
// not be ready for us.
class PathBuffer {
  public:
    static constexpr std::size_t kSize = 4096;  // PATH_MAX

    PathBuffer() : text_(static_cast<char*>(take_scratch(kSize))) {}
    ~PathBuffer() { give_back_scratch(text_, kSize); }
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
    char* const text_;
};

}  // namespace cuslice
