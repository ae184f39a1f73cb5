// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/file_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policy/base/kernel_memory.h"
#include "policy/lease/published.h"
#include "policy/lease/steps.h"
#include "policy/ledger/file.h"
#include "policy/ledger/process_identity.h"

namespace cuslice::lease {

namespace {

constexpr mode_t kOwnerOnly = 0600;

// A name beside `path` that nobody else uses.
struct OwnName {
    explicit OwnName(const char* path) {
        snprintf(text, sizeof text, "%s.%d-%llx", path, getpid(),
                 static_cast<unsigned long long>(ledger::random_number()));
    }
    char text[ledger::kPathBytes + 40];
};

void write(File& file, State& state, const Terms& terms) {
    make_empty(state, terms);
    publish_first(file, state);
    file.header = {.magic = kMagic, .version = kVersion, .size = sizeof(File), .reserved = {}};
}

bool fill(int file, const Terms& terms) {
    const ScratchState state;
    if (!state.get() || !ledger::may_be_as_large_as(sizeof(File)) || !ledger::allocate(file, 0, sizeof(File)))
        return false;
    File* const made = map_lease(file, PROT_READ | PROT_WRITE);
    if (!made)
        return false;
    write(*made, *state.get(), terms);
    munmap(made, sizeof(File));
    return true;
}

bool give_name(const OwnName& own, const char* path) { return link(own.text, path) == 0 || errno == EEXIST; }

}  // namespace

ScratchState::ScratchState() : state_(static_cast<State*>(map_kernel_memory(sizeof(State)))) {}

ScratchState::~ScratchState() {
    if (state_)
        munmap(state_, sizeof(State));
}

File* map_lease(int file, int protection) {
    void* const memory = mmap(nullptr, sizeof(File), protection, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<File*>(memory);
}

bool make_lease(const char* path, const Terms& terms, ledger::LedgerError* why) {
    const OwnName own(path);
    const int file = open(own.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | ledger::kSafely, kOwnerOnly);
    if (file < 0)
        return ledger::set_no_room(why, "can't make", own.text), false;
    const bool made = fill(file, terms) && give_name(own, path);
    if (!made)
        ledger::set_no_room(why, "can't make", path);
    close(file);
    unlink(own.text);
    return made;
}

bool take_lease_away(const char* path) {
    const OwnName aside(path);
    return rename(path, aside.text) == 0 ? unlink(aside.text) == 0 : errno == ENOENT;
}

}  // namespace cuslice::lease
