// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "virtual_gpu/driver/scratch.h"

namespace cuslice {

// Room for a path, which is not the stack's, of which a thread of the program may have 16 KiB, nor malloc's, which may
// not be ready for us.
class PathBuffer {
  public:
    static constexpr size_t kSize = 4096;  // PATH_MAX

    PathBuffer() : text_(static_cast<char*>(take_scratch(kSize))) {}
    ~PathBuffer() { give_back_scratch(text_, kSize); }
    PathBuffer(const PathBuffer&) = delete;
    PathBuffer& operator=(const PathBuffer&) = delete;

    // False if it doesn't fit: the path is as it was.
    bool set(const char* text) { return join(text, "", ""); }
    bool join(const char* first, const char* second, const char* third) {
        if (!text_)
            return false;
        size_t whole = 0;
        for (const char* part : {first, second, third}) {
            const size_t length = std::strlen(part);
            if (length >= kSize - whole)
                return false;
            whole += length;
        }
        char* at = text_;
        for (const char* part : {first, second, third}) {
            const size_t length = std::strlen(part);
            std::memcpy(at, part, length);
            at += length;
        }
        *at = '\0';
        return true;
    }
    const char* text() const { return text_; }

  private:
    char* const text_;
};

}  // namespace cuslice
