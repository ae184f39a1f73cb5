// SPDX-License-Identifier: Apache-2.0
// Jobs that share the time of fake GPUs, whose kernels take a time (`ms`) or go on until a word is set (`wait`): so who
// waits for whom is certain however slow the machine is.
#pragma once

#include <memory>
#include <string>

#include "tests/preload/machine.h"
#include "tests/preload/scene.h"
#include "tests/soon.h"

namespace cuslice::tests {

/// Begins of lines that are said.
inline const std::string kPassedBy = "the GPU's time: the job whose turn it was is passed by";
inline const std::string kOutOfTurn = "the GPU's time: a launch goes on out of turn";
inline const std::string kNotShared = "the GPU's time is not shared";

/// A job's process, with a context on GPU 0, the code `c`, a stream `s` and a word `w`, which is 0.
using Worker = std::unique_ptr<Guest>;

/// Makes this context current, with a code, a stream and a word, whose names end so.
inline void prepare(Guest& guest, const std::string& gpu = "0", const std::string& suffix = "") {
    REQUIRE(guest.code("retain " + gpu) == kSuccess);
    REQUIRE(guest.code("code c" + suffix) == kSuccess);
    REQUIRE(guest.code("stream s" + suffix) == kSuccess);
    REQUIRE(guest.code("alloc w" + suffix + " 4") == kSuccess);
    REQUIRE(guest.code("poke w" + suffix + " 0") == kSuccess);
}

inline unsigned lines_of(Guest& guest, const std::string& begin) {
    unsigned count = 0;
    for (const std::string& line : guest.complaints())
        count += line.starts_with("cuslice: " + begin);
    return count;
}

/// A GPU whose driver is of this version.
inline std::string of_version(const Folder& folder, const std::string& version) {
    return folder.write("machine.toml", "[driver]\nversion = \"" + version + "\"\n[[gpu]]\nprofile = \"t4\"\n");
}

/// By which way a job gets its share.
enum class By { launcher, preload };

struct TimeShared {
    explicit TimeShared(const std::string& gpus = "1xt4") : fake(gpus) {}

    Worker start(const Words& more = {}, By by = By::launcher, const std::string& share = "50%") const {
        const Words settings = joined({"CUSLICE_FAKE_COST=ms*=1ms,wait*=until", "CUSLICE_DIR=" + leases}, more);
        const Words program = Guest::route("linked");
        Worker made =
            by == By::preload
                ? std::make_unique<Guest>(
                      program, sliced(fake, books.path(), joined(settings, {"CUSLICE_SHARE=" + share, kQuantum})))
                : std::make_unique<Guest>(
                      joined({kLaunch, "run", "--fake", fake, "--share", share, "--"}, program),
                      plain(joined(joined(settings, {kQuantum}), {"CUSLICE_FAKE_DIR=" + books.path()})));
        made->let_change("free", "the other jobs take and give back");
        REQUIRE(made->code("init") == kSuccess);
        return made;
    }
    Worker worker(const Words& more = {}, By by = By::launcher) const {
        Worker made = start(more, by);
        prepare(*made);
        return made;
    }
    /// Another process of that one's job.
    Worker sibling(Guest& of, const Words& more = {}) const {
        return worker(joined({"CUSLICE_JOB=" + of.ask("getenv CUSLICE_JOB").substr(1)}, more), By::preload);
    }

    // Long: nobody is passed by meanwhile on a machine that is busy.
    inline static const std::string kQuantum = "CUSLICE_SHARE_QUANTUM=500ms";
    Folder books, folder;
    std::string fake, leases = folder.path();
};

/// Has a kernel run until set_free().
inline void occupy(Guest& holder) {
    REQUIRE(holder.code("run c wait s w") == kSuccess);
    REQUIRE(holder.code("query s") == CUDA_ERROR_NOT_READY);
}
/// Ends it; the moment just before.
inline uint64_t set_free(Guest& holder) { return holder.number("clock poke w 1", 1); }

/// Begins a command in a thread of its own; returns when it waits, or is done.
inline void begin(Guest& guest, const std::string& command) {
    REQUIRE(guest.code("aside clock " + command) == kSuccess);
}
/// The moment at which it was done. It has to succeed.
inline uint64_t done_at(Guest& guest) {
    const Words words = split_words(guest.ask("joined"));
    REQUIRE(words.size() == 3);
    CHECK(words[0] == "0");
    return std::stoull(words[2]);
}

/// The line that says so of a process, for this reason.
inline std::string passed_by(int pid, const std::string& why) {
    return kPassedBy + ", as its process " + std::to_string(pid) + " " + why;
}

inline void check_launches(Guest& guest) {
    CHECK(guest.code("run c ms s") == kSuccess);
    CHECK(guest.code("settle s") == kSuccess);
}

}  // namespace cuslice::tests
