// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/dump.h"

#include <unistd.h>

#include <cerrno>

#include "policy/base/own_descriptors.h"
#include "policy/base/page_vector.h"
#include "shim/entry.h"
#include "shim/log.h"

namespace cuslice {

namespace {

// Grows by pages of the kernel's. What the kernel gives no memory for is missing, and nothing is written then.
class Text {
  public:
    ~Text() { bytes_.release(); }
    /// Appends text and numbers, one after the other.
    template <typename... Parts>
    Text& append(const Parts&... parts) {
        (add(parts), ...);
        return *this;
    }
    Text& append_address(uint64_t address) {
        FixedText<24> digits("\"0x");
        for (int shift = 60; shift >= 0; shift -= 4)
            digits.append("0123456789abcdef"[address >> shift & 15]);
        return append(digits.append('"'));
    }
    // In one piece: what several threads append must not be mixed.
    void write_to(int file) {
        if (whole_)
            write_at_once(file, bytes_.begin(), bytes_.size());
    }

  private:
    void add(std::string_view text) {
        for (const char c : text)
            whole_ = whole_ && bytes_.push_back(c);
    }
    void add(uint64_t number) { add(FixedText<24>().append(number)); }

    PageVector<char> bytes_;
    bool whole_ = true;
};

struct Writing {
    Text& text;
    bool first_segment = true, first_block = true;
};

void begin_segment(const Segment& segment, void* self) {
    auto& writing = *static_cast<Writing*>(self);
    writing.text.append(writing.first_segment ? "" : "]},", "{\"address\":").append_address(segment.address);
    writing.text.append(",\"bytes\":", segment.bytes, ",\"blocks\":[");
    writing.first_segment = false;
    writing.first_block = true;
}

void write_block(const Block& block, void* self) {
    auto& writing = *static_cast<Writing*>(self);
    constexpr std::string_view kStates[] = {"free", "used", "span", "parked", "retired"};
    writing.text.append(writing.first_block ? "" : ",", "{\"address\":").append_address(block.address);
    writing.text.append(",\"bytes\":", block.bytes);
    const Block::State now = block.state;  // another thread may free the block at any moment
    const bool used = now == Block::State::used;
    const uint64_t requested = used ? uint64_t{block.requested} : 0;
    const std::string_view state = used && !requested ? std::string_view("kept") : kStates[static_cast<size_t>(now)];
    writing.text.append(",\"state\":\"", state, "\"");
    if (requested)
        writing.text.append(",\"requested\":", requested);
    else if (const Span* span = now == Block::State::span ? address_map().at(block.address).span : nullptr)
        writing.text.append(",\"cut_into\":", SizeClass::bytes(span->size_class));
    writing.text.append("}");
    writing.first_block = false;
}

}  // namespace

void dump_caches(const VirtualGpu& gpu) {
    if (!wants(LogLevel::debug))
        return;
    const int saved_errno = errno;
    if (const int file = open_log_file(); file >= 0) {
        Text text;
        text.append("cuslice: {\"gpu\":\"", gpu.identity().uuid, "\",\"caches\":[");
        bool first = true;
        process().caches().each([&](ContextCache& cache) {
            if (cache.gpu != &gpu)
                return;
            text.append(first ? "" : ",", "{\"context\":");
            text.append_address(reinterpret_cast<uintptr_t>(cache.context)).append(",\"segments\":[");
            Writing writing{text};
            cache.allocator.inspect(begin_segment, write_block, &writing);
            text.append(writing.first_segment ? "]}" : "]}]}");
            first = false;
        });
        text.append("]}\n").write_to(file);
        close(file);
    }
    errno = saved_errno;
}

}  // namespace cuslice
