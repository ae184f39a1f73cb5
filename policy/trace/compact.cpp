// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/compact.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cuslice::trace {

namespace {

constexpr unsigned kStretch = 30;  // of time, in bits of microseconds: 18 minutes
constexpr size_t kPiece = 16;      // of a text

constexpr size_t pieces_of(size_t bytes) { return (bytes + kPiece - 1) / kPiece; }

// A piece of a text, which begins at `at` there.
Record piece_of(Kind kind, std::string_view text, size_t at) {
    Record piece{.kind = kind, .place = static_cast<uint8_t>(at / kPiece), .time = static_cast<uint32_t>(text.size())};
    const std::string_view bytes = slice(text, at, kPiece);
    std::memcpy(&piece.size, bytes.data(), bytes.size());
    return piece;
}

struct KnownSource {
    uint64_t stream;
    uint32_t thread;
    uint32_t recording;  // 0: none
    uint16_t source;
};
// Streams take turns in a thread.
constexpr size_t kKnown = 4;
constinit thread_local KnownSource known_sources[kKnown] = {};

uint64_t hash(uint64_t stream, uint32_t thread) { return (stream ^ uint64_t{thread} << 32) * 0x9e3779b97f4a7c15ull; }

// Handles are addresses, or small numbers.
KnownSource& known_source(uint64_t stream) { return known_sources[(hash(stream, 0) >> 60) % kKnown]; }

std::string_view bytes_of(const Record& record) { return {reinterpret_cast<const char*>(&record), sizeof record}; }

Record event_of(const Row& row) {
    constexpr uint64_t kMostHeld = kHeldNotKnown - 1;
    Record event{.kind = static_cast<Kind>(static_cast<unsigned>(row.action) + 1),
                 .time = static_cast<uint32_t>(row.time),
                 .held = kHeldNotKnown,
                 .address = row.address};
    if (row.held != Row::kNotKnown)
        event.held = static_cast<uint32_t>(std::min(row.held / kHeldUnit, kMostHeld));
    return event;
}

bool is_narrow(const Row& row) { return row.address >> 56 == 0 && row.bytes >> 40 == 0; }

}  // namespace

uint64_t now() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

Header header_of(pid_t process) {
    Header header;
    header.process = static_cast<uint32_t>(process);
    header.began = now();
    return header;
}

// Where the pair is, or would be; null where there is no memory yet.
Sources::Entry* Sources::find(uint32_t thread, uint64_t stream) const {
    if (!entries_)
        return nullptr;
    for (size_t at = hash(stream, thread) >> 32;; at++) {
        Entry& entry = entries_[at & (capacity_ - 1)];
        if (!entry.number || (entry.stream == stream && entry.thread == thread))
            return &entry;
    }
}

bool Sources::grow() {
    const int saved_errno = errno;
    const size_t capacity = capacity_ ? capacity_ * 2 : kFirst;
    void* const memory =
        mmap(nullptr, capacity * sizeof(Entry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    if (memory == MAP_FAILED)
        return false;
    Entry* const before = entries_;
    const size_t had = capacity_;
    entries_ = static_cast<Entry*>(memory);
    capacity_ = capacity;
    for (size_t i = 0; i < had; i++)
        if (before[i].number)
            *find(before[i].thread, before[i].stream) = before[i];
    if (before)
        munmap(before, had * sizeof(Entry));
    return true;
}

uint16_t Sources::number(uint32_t thread, uint64_t stream, bool* is_new) {
    *is_new = false;
    if (const Entry* const found = find(thread, stream); found && found->number)
        return found->number;
    if (count_ == kMost)
        return 0;
    if (count_ >= capacity_ / 2 && !grow())
        return 0;
    *is_new = true;
    *find(thread, stream) = {stream, thread, ++count_};
    return count_;
}

uint32_t Compact::number() {
    static constinit std::atomic<uint32_t> last{0};
    if (const uint32_t number = number_.load(std::memory_order_relaxed))
        return number;
    uint32_t none = 0;
    const uint32_t next = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return number_.compare_exchange_strong(none, next, std::memory_order_relaxed) ? next : none;
}

// An event has half of its time. True if the file has no record of the time nearby.
bool Compact::add_clock(Batch& batch, uint64_t time) const {
    if (clock_.load(std::memory_order_acquire) == time >> kStretch)
        return false;
    batch.add({.kind = Kind::clock, .address = time});
    return true;
}

File::Appended Compact::place_of(File& file, const Row& row, Batch& batch, uint8_t& place, int& error) {
    place = 0;
    if (row.gpu.empty())
        return File::Appended::done;
    place = last_[row.ordinal].load(std::memory_order_acquire);
    if (place != 0 && limits_[place].load(std::memory_order_relaxed) == row.limit)
        return File::Appended::done;
    return new_place(file, row, batch, place, error);
}

// Nobody has the number before it is defined in the file. Where there are no more, a definition goes with each event.
File::Appended Compact::new_place(File& file, const Row& row, Batch& batch, uint8_t& place, int& error) {
    const DisablingLockGuard lock(mutex_);
    for (place = 1; place <= places_; place++) {
        if (gpus_[place] != row.ordinal || limits_[place].load(std::memory_order_relaxed) != row.limit)
            continue;
        last_[row.ordinal].store(place, std::memory_order_release);
        return File::Appended::done;
    }
    if (const auto named = define_name(file, row, error); named != File::Appended::done)
        return named;
    place = places_ < kMostPlaces ? static_cast<uint8_t>(places_ + 1) : kAnyPlace;
    const Record definition{.kind = Kind::place, .place = place, .source = row.ordinal, .address = row.limit};
    if (place == kAnyPlace)
        return batch.add(definition), File::Appended::done;
    if (const auto defined = file.append(bytes_of(definition), error); defined != File::Appended::done)
        return defined;
    gpus_[place] = row.ordinal;
    places_ = place;
    limits_[place].store(row.limit, std::memory_order_relaxed);
    last_[row.ordinal].store(place, std::memory_order_release);
    return File::Appended::done;
}

File::Appended Compact::define_name(File& file, const Row& row, int& error) {
    if (named_[row.ordinal])
        return File::Appended::done;
    for (size_t at = 0; at < row.gpu.size(); at += kPiece) {
        Record piece = piece_of(Kind::name, row.gpu, at);
        piece.source = row.ordinal;
        const auto defined = file.append(bytes_of(piece), error);
        if (defined != File::Appended::done)
            return defined;
    }
    named_[row.ordinal] = true;
    return File::Appended::done;
}

// A pair's thread is this one, so nobody else can have its number before it is defined.
File::Appended Compact::source_of(File& file, const Row& row, Batch& batch, uint16_t& source, int& error) {
    KnownSource& known = known_source(row.stream);
    const uint32_t own = number();
    source = known.source;
    const bool same = known.recording == own && known.stream == row.stream && known.thread == row.thread;
    if (same)
        return File::Appended::done;
    bool is_new = false;
    {
        const DisablingLockGuard lock(mutex_);
        source = sources_.number(row.thread, row.stream, &is_new);
    }
    const bool any = source == 0;
    if (any)
        source = kAnySource;
    const Record definition{.kind = Kind::source, .source = source, .time = row.thread, .address = row.stream};
    if (any)
        return batch.add(definition), File::Appended::done;
    if (is_new)
        if (const auto defined = file.append(bytes_of(definition), error); defined != File::Appended::done)
            return defined;
    known = {row.stream, row.thread, own, source};
    return File::Appended::done;
}

void Compact::Batch::add_pieces(Kind kind, std::string_view text) {
    for (size_t at = 0; at < text.size(); at += kPiece)
        add(piece_of(kind, text, at));
}

File::Appended Compact::append(File& file, const Row& row, int& error) {
    if (row.program.empty() && row.stack.empty()) [[likely]] {
        Record records[kMostPlain];
        return append_batch(file, row, Batch(records), error);
    }
    constexpr size_t kMost = kMostPlain + pieces_of(kMostOfProgram) + pieces_of(kMostOfStack);
    static_assert(kMost * sizeof(Record) <= Windows::kMostAtOnce);
    Record records[kMost];
    Batch batch(records);
    batch.add_pieces(Kind::program, slice(row.program, 0, kMostOfProgram));
    return append_batch(file, row, batch, error);
}

File::Appended Compact::append_batch(File& file, const Row& row, Batch batch, int& error) {
    Record event = event_of(row);
    if (const auto there = place_of(file, row, batch, event.place, error); there != File::Appended::done)
        return there;
    if (const auto there = source_of(file, row, batch, event.source, error); there != File::Appended::done)
        return there;
    const bool clock = add_clock(batch, row.time);
    batch.add_pieces(Kind::stack, slice(row.stack, 0, kMostOfStack));
    if (is_narrow(row)) {
        event.size = static_cast<uint32_t>(row.bytes);
        event.address |= row.bytes >> 32 << 56;
    } else {
        batch.add({.kind = Kind::size, .address = row.bytes});
        event.kind = static_cast<Kind>(static_cast<uint8_t>(event.kind) | kWide);
    }
    batch.add(event);
    const auto result = file.append(batch.view(), error);
    if (clock && result == File::Appended::done)
        clock_.store(row.time >> kStretch, std::memory_order_release);
    return result;
}

}  // namespace cuslice::trace
