// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "config/text.h"
#include "policy/trace/row.h"

namespace cuslice {

// Python's frames of the calling thread, as flame graphs' tools have them: outermost first, "main (train.py:33);step
// (train.py:12)", each part as append_field() writes it. What has no room is left out in the middle, with "…" in its
// place: the innermost have half of the room then. Large: for Scratch.
//
// The frames are read, and neither the interpreter's lock nor memory of Python's is taken: packages call CUDA without
// the lock, and a thread's own frames don't change while it is in a call. Nothing read is trusted: reads that lead
// nowhere fail, and an object counts as code or text only if its type says so.
class PythonStack {
  public:
    // Empty where the process has no CPython of versions 3.8 to 3.13, or this thread runs no Python. Keeps errno.
    std::string_view read();

  private:
    struct Interpreter;
    struct Frame {
        uintptr_t code;
        int position;  // in bytes of instructions; below 0: not known
    };
    using FrameText = FixedText<320>;
    static constexpr size_t kMostFrames = 512;

    void collect(const Interpreter& python);
    bool add_inner(const FrameText& text);
    void keep_half_of_inner();
    void write_outer(const Interpreter& python);
    void write(const Interpreter& python);

    Frame frames_[kMostFrames] = {};  // innermost first
    size_t count_ = 0;
    bool more_ = false;  // there are frames around these
    // Texts of the innermost frames, each with what divides it from the next.
    FixedText<trace::kMostOfStack> inner_;
    uint16_t ends_[kMostFrames] = {};
    size_t inner_count_ = 0;
    FixedText<trace::kMostOfStack + 1> text_;
};

}  // namespace cuslice
