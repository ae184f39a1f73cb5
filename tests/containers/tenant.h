// SPDX-License-Identifier: Apache-2.0
// A guest in a container, under a limit of a fake GPU: what tests of containers begin with.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "tests/catch.h"
#include "tests/containers/container.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"
#include "tests/skip.h"
#include "tests/soon.h"

namespace cuslice::tests {

/// The library's way into the program.
enum class How {
    alone,    // LD_PRELOAD, set in the container
    inside,   // a launcher in the container
    outside,  // a launcher that starts the container
};

inline const char* text_of(How how) {
    return how == How::alone ? "LD_PRELOAD in it" : how == How::inside ? "launcher in it" : "launcher outside";
}

/// A laptop's GPU of 2002 MiB with a limit of 1 GiB, whose books are in this folder.
inline Words settings(const Folder& books, const Words& more = {}) {
    return plain(joined({"CUSLICE_FAKE=1xlaptop-2g", "CUSLICE_FAKE_DIR=" + books.path(), "CUSLICE_LIMIT=1GiB",
                         "CUSLICE_HEADROOM=16MiB"},
                        more));
}

inline Words command(const Container& container, How how, const Words& program) {
    const Words launch{kLaunch, "run", "--"};
    Words words;
    if (how == How::alone)
        words = container.command(joined({"/usr/bin/env", "LD_PRELOAD=" + preload_list()}, program));
    else if (how == How::inside)
        words = container.command(joined(launch, program));
    else
        words = joined(launch, container.command(program));
    return joined(container.before(), words);
}

/// Makes the folder of the books writable in a container of this kind, and its user's.
inline Like with_books(Like like, const Folder& books) {
    like.writable.push_back(books.path());
    if (like.user != 0)
        REQUIRE(::chown(books.path().c_str(), like.user, like.user) == 0);
    return like;
}

/// The guest's complaints, as soon as there are so many: runc passes on by itself what its container writes.
inline Words complaints_of(Guest& guest, size_t count) {
    soon([&] { return guest.complaints().size() >= count; });
    return guest.complaints();
}

struct Tenant {
    Tenant(const Like& like, How how, const Folder& books, const Words& more = {})
        : container(with_books(like, books)),
          guest(command(container, how, Guest::route("linked")), settings(books, more)) {}
    /// cuInit, and a context; its CUresult.
    int start() { return try_device(guest); }
    /// All processes in the container, and those that run it; the latest first.
    std::vector<int> family() const {
        std::vector<int> all = descendants(guest.child());
        all.push_back(guest.child());
        return all;
    }
    void signal_all(int signal) const {
        for (const int pid : family())
            ::kill(pid, signal);
    }

    Container container;
    Guest guest;
};

/// Sanitizers read /proc before anything else runs, and end a program that has none.
inline bool can_hold(const Like& like) {
    if (!like.proc && !kSanitizer.empty()) {
        skip("a sanitizer's runtime needs /proc (" + text_of(like) + ")");
        return false;
    }
    return can_make(like);
}

/// A launcher outside preloads the library into the tool as well. runc takes no sanitizer's runtime; and is root's
/// where its program is another user's, who can't open the books of fake GPUs that root's launcher has looked at.
inline bool can_pass_on(const Like& like, How how) {
    if (how != How::outside)
        return true;
    if (kSanitizer == "thread") {
        skip("tsan's runtime starts a thread, and who has two can't leave its namespaces");
        return false;
    }
    if (std::string(kTool) != "runc")
        return true;
    if (!kSanitizer.empty())
        skip("runc doesn't run with a sanitizer's runtime preloaded");
    return kSanitizer.empty() && like.user == 0;
}

}  // namespace cuslice::tests
