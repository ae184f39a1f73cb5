// SPDX-License-Identifier: Apache-2.0
// Written after the documents alone, so that it shows that they are enough: nothing of policy/trace/ is included.
#include "tests/bench/recorded_rows.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

namespace cuslice::bench {

namespace {

constexpr char kMagic[] =
    "\x89"
    "CUSL\r\n\x1a";
constexpr size_t kRecord = 24;
constexpr uint64_t kNotKnown = ~0ull;

template <typename Number>
Number number_at(const std::string& file, size_t at) {
    Number number;
    std::memcpy(&number, file.data() + at, sizeof number);
    return number;
}

class Reader {
  public:
    Reader(const std::string& file, std::vector<RecordedRow>& rows)
        : file_(file), rows_(rows), clock_(number_at<uint64_t>(file, 16)) {}

    void take(size_t at) {
        const auto kind = number_at<uint8_t>(file_, at);
        const auto address = number_at<uint64_t>(file_, at + 16);
        const bool wide = kind & 0x10;
        if (wide && !has_size_)
            throw std::invalid_argument("a wide event without its size");
        if ((kind & 0x0f) >= 1 && (kind & 0x0f) <= 3 && (kind & 0xe0) == 0)
            event(at, kind & 0x0f, wide ? address : address << 8 >> 8,
                  wide ? size_ : number_at<uint32_t>(file_, at + 8) | address >> 56 << 32);
        else if (kind == 4)
            places_[place(at)] = {source(at), address};
        else if (kind == 5)
            clock_ = address;
        else if (kind == 6)
            sources_[source(at)] = {number_at<uint32_t>(file_, at + 4), address};
        else if (kind == 7)
            piece(names_[source(at)], at);
        else if (kind == 9)
            piece(program_, at);
        else if (kind == 10)
            piece(stack_, at);
        else if (kind != 0 && kind != 8)
            throw std::invalid_argument("its kind is unknown");
        has_size_ = kind == 8;
        size_ = address;
    }

  private:
    struct Place {
        uint16_t gpu;
        uint64_t limit;
    };
    struct Source {
        uint32_t thread;
        uint64_t stream;
    };
    struct Text {
        std::string text;
        size_t known = 0;
    };
    uint8_t place(size_t at) const { return number_at<uint8_t>(file_, at + 1); }
    uint16_t source(size_t at) const { return number_at<uint16_t>(file_, at + 2); }

    void piece(Text& name, size_t at) {
        constexpr size_t kPiece = 16;
        name.text.resize(number_at<uint32_t>(file_, at + 4));
        const size_t from = place(at) * kPiece;
        if (from >= name.text.size())
            throw std::invalid_argument("a text's piece is behind its end");
        const size_t bytes = std::min(kPiece, name.text.size() - from);
        std::memcpy(name.text.data() + from, file_.data() + at + 8, bytes);
        name.known += bytes;
    }

    void event(size_t at, unsigned action, uint64_t address, uint64_t bytes) {
        static constexpr const char* kActions[] = {"", "allocate", "free", "allocate failure"};
        const Source who = sources_.at(source(at));
        RecordedRow row{.thread = who.thread,
                        .time = time(number_at<uint32_t>(file_, at + 4)),
                        .action = kActions[action],
                        .address = address,
                        .bytes = bytes,
                        .stream = who.stream,
                        .gpu = {},
                        .limit = {},
                        .held = {},
                        .program = taken(program_),
                        .stack = taken(stack_)};
        if (place(at) != 0) {
            const Place where = places_.at(place(at));
            const Text& name = names_.at(where.gpu);
            if (name.known < name.text.size())
                throw std::invalid_argument("its GPU's name lacks a piece");
            row.gpu = name.text;
            if (where.limit != kNotKnown)
                row.limit = std::to_string(where.limit);
        }
        const auto held = number_at<uint32_t>(file_, at + 12);
        if (held != 0xffffffff)
            row.held = std::to_string(held * 4096ull);
        rows_.push_back(row);
    }

    static std::string taken(Text& text) {
        if (text.known < text.text.size())
            throw std::invalid_argument("a text lacks a piece");
        return std::exchange(text, {}).text;
    }

    uint64_t time(uint32_t low) const {
        constexpr uint64_t kHalf = 1ull << 31;
        return clock_ + ((low - clock_ + kHalf) & 0xffffffff) - kHalf;
    }

    const std::string& file_;
    std::vector<RecordedRow>& rows_;
    uint64_t clock_, size_ = 0;
    bool has_size_ = false;
    std::map<unsigned, Place> places_;
    std::map<unsigned, Source> sources_;
    std::map<unsigned, Text> names_;
    Text program_, stack_;  // of the next event
};

}  // namespace

bool is_compact(const std::string& file) { return file.compare(0, 8, kMagic, 8) == 0; }

bool read_compact(const std::string& file, std::vector<RecordedRow>& rows, std::string& why) {
    const bool known = is_compact(file) && file.size() >= 2 * kRecord && number_at<uint32_t>(file, 8) == 1 &&
                       number_at<uint32_t>(file, 24) == kRecord && number_at<uint32_t>(file, 28) == 4096;
    if (!known)
        return why = "record 0: no header of a compact recording", false;
    Reader reader(file, rows);
    for (size_t record = 2; (record + 1) * kRecord <= file.size(); record++)
        try {
            reader.take(record * kRecord);
        } catch (const std::exception& error) {
            return why = "record " + std::to_string(record) + ": " + error.what(), false;
        }
    return true;
}

bool is_torn(const std::string& before, const std::string& line) {
    static constexpr char kTime[] = "dd:dd:dd.dddddd";
    if (!before.empty() || line.empty())
        return false;
    const std::string first = line.substr(0, line.find(','));
    if (first.size() >= sizeof kTime || (first.size() < line.size() && first.size() < sizeof kTime - 1))
        return false;
    for (size_t i = 0; i < first.size(); i++)
        if (kTime[i] == 'd' ? first[i] < '0' || first[i] > '9' : first[i] != kTime[i])
            return false;
    return true;
}

}  // namespace cuslice::bench
