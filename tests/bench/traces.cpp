// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/traces.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <sstream>
#include <unordered_map>

#include "tests/bench/recorded_rows.h"

namespace cuslice::bench {

namespace {

constexpr uint64_t kMiB = 1 << 20;

// Writes a trace down and hands out block numbers.
class Writer {
  public:
    uint32_t take(uint64_t bytes) {
        uint32_t block = count_;
        if (free_.empty()) {
            count_++;
        } else {
            block = free_.back();
            free_.pop_back();
        }
        trace.push_back({block, bytes});
        return block;
    }
    void give_back(uint32_t block) {
        trace.push_back({block, 0});
        free_.push_back(block);
    }
    Trace trace;

  private:
    std::vector<uint32_t> free_;
    uint32_t count_ = 0;
};

std::vector<std::string> fields_of(const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream text(line);
    for (std::string field; std::getline(text, field, ',');)
        fields.push_back(field);
    if (line.ends_with(','))
        fields.emplace_back();  // an empty one, which getline doesn't give
    return fields;
}

uint64_t number_in(const std::string& text, int base) {
    size_t read = 0;
    const uint64_t number = std::stoull(text, &read, base);
    if (read != text.size())
        throw std::invalid_argument(text);
    return number;
}

}  // namespace

namespace {

// Makes a trace of rows. Throws where one makes no sense after those before.
class Follower {
  public:
    void take(const std::string& action, uint64_t address, uint64_t bytes) {
        if (action == "allocate failure" || bytes == 0)
            return;
        const auto known = live_.find(address);
        if (action == "allocate" && known == live_.end()) {
            live_[address] = writer.take(bytes);
        } else if (action == "free" && known != live_.end()) {
            writer.give_back(known->second);
            live_.erase(known);
        } else {
            throw std::invalid_argument(action);
        }
    }
    Writer writer;

  private:
    std::unordered_map<uint64_t, uint32_t> live_;
};

bool read_records(const std::string& file, Trace& trace, std::string& why) {
    std::vector<RecordedRow> rows;
    if (!read_compact(file, rows, why))
        return false;
    Follower follower;
    for (size_t i = 0; i < rows.size(); i++)
        try {
            follower.take(rows[i].action, rows[i].address, rows[i].bytes);
        } catch (const std::exception&) {
            return why = "event " + std::to_string(i + 1) + " makes no sense after those before", false;
        }
    trace = std::move(follower.writer.trace);
    return true;
}

}  // namespace

bool read_recorded(std::istream& text, Trace& trace, std::string& why) {
    std::string line;
    if (text.peek() == 0x89)
        return read_records({std::istreambuf_iterator<char>(text), std::istreambuf_iterator<char>()}, trace, why);
    std::getline(text, line);
    const std::vector<std::string> names = fields_of(line);
    const auto column = [&](const char* name) {
        return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    };
    const size_t action = column("Action"), pointer = column("Pointer"), size = column("Size");
    if (std::max({action, pointer, size}) >= names.size())
        return why = "line 1: no columns Action, Pointer and Size", false;
    Follower follower;
    std::string before;
    for (size_t number = 2; std::getline(text, line) && !text.eof(); number++, before = line)
        try {
            if (line.empty() || is_torn(before, line))
                continue;
            const std::vector<std::string> fields = fields_of(line);
            const std::string& what = fields.at(action);
            if (fields.size() != names.size())
                throw std::invalid_argument(line);
            const uint64_t address = number_in(fields[pointer], 16), bytes = number_in(fields[size], 10);
            follower.take(what, address, bytes);
        } catch (const std::exception&) {
            return why = "line " + std::to_string(number) + ": " + line, false;
        }
    trace = std::move(follower.writer.trace);
    return true;
}

Trace random_allocations(uint64_t most, size_t operations, uint64_t seed) {
    constexpr uint64_t kMaxHeld = 16'000 * kMiB;
    std::mt19937_64 random(seed);
    Writer writer;
    struct Live {
        uint32_t block;
        uint64_t bytes;
    };
    std::vector<Live> live;
    uint64_t held = 0;
    for (size_t i = 0; i < operations; i++) {
        const uint64_t bytes = 1 + random() % most;
        if (live.empty() || (random() % 100 < 73 && held + bytes < kMaxHeld)) {
            live.push_back({writer.take(bytes), bytes});
            held += bytes;
        } else {
            const size_t k = random() % live.size();
            writer.give_back(live[k].block);
            held -= live[k].bytes;
            live[k] = live.back();
            live.pop_back();
        }
    }
    return writer.trace;
}

Trace training(size_t steps, size_t period, uint64_t seed) {
    constexpr uint64_t kWidth = 1024, kHeads = 16, kLayers = 24, kWords = 50'257, kBatch = 8;
    std::mt19937_64 random(seed);
    std::vector<uint64_t> lengths(period);
    for (uint64_t& length : lengths)
        length = 64 + random() % 449;
    Writer writer;
    // A weight, its gradient and two moments, in four bytes each.
    for (uint64_t layer = 0; layer < kLayers; layer++)
        for (const uint64_t words : {4 * kWidth * kWidth, 8 * kWidth * kWidth, 4 * kWidth})
            for (int kind = 0; kind < 4; kind++)
                writer.take(words * 4);
    for (int kind = 0; kind < 4; kind++)
        writer.take(kWords * kWidth * 4);

    std::vector<uint32_t> kept;
    for (size_t step = 0; step < steps; step++) {
        const uint64_t rows = kBatch * lengths[step % period], length = lengths[step % period];
        const auto temporary = [&](uint64_t bytes) { writer.give_back(writer.take(bytes)); };
        for (uint64_t layer = 0; layer < kLayers; layer++) {
            kept.push_back(writer.take(rows * 3 * kWidth * 2));                  // queries, keys, values
            kept.push_back(writer.take(kBatch * kHeads * length * length * 2));  // attention
            temporary(kBatch * kHeads * length * length * 4);                    // its softmax
            kept.push_back(writer.take(rows * kWidth * 2));
            kept.push_back(writer.take(rows * 4 * kWidth * 2));  // the wide layer
            temporary(rows * 4 * kWidth * 2);
            kept.push_back(writer.take(rows * 8));  // means and variances
        }
        const uint32_t logits = writer.take(rows * kWords * 2);
        temporary(rows * kWords * 4 / 8);
        while (!kept.empty()) {
            const uint32_t gradient = writer.take(rows * kWidth * 2);
            temporary(rows * 4 * kWidth * 2);
            writer.give_back(kept.back());
            kept.pop_back();
            writer.give_back(gradient);
        }
        writer.give_back(logits);
    }
    return writer.trace;
}

uint32_t blocks_of(const Trace& trace) {
    uint32_t most = 0;
    for (const Operation& operation : trace)
        most = std::max(most, operation.block + 1);
    return most;
}

uint64_t peak_of(const Trace& trace) {
    std::vector<uint64_t> sizes(blocks_of(trace));
    uint64_t live = 0, peak = 0;
    for (const Operation& operation : trace) {
        live += operation.bytes - (operation.bytes ? 0 : sizes[operation.block]);
        sizes[operation.block] = operation.bytes;
        peak = std::max(peak, live);
    }
    return peak;
}

}  // namespace cuslice::bench
