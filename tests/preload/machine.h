// SPDX-License-Identifier: Apache-2.0
// A machine of several fake GPUs, and launching guests on it: what tests of choosing GPUs begin with.
#pragma once

#include <memory>

#include "tests/catch.h"
#include "tests/json.h"
#include "tests/preload/guest.h"

namespace cuslice::tests {

inline const std::string kLaunch = CUSLICE_TEST_LAUNCH;

inline Words joined(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// The answer of Machine::seen() for a guest whose cuInit fails with this result.
inline std::string failed_init(int result) { return "-" + std::to_string(result); }

struct Machine {
    explicit Machine(const std::string& gpus = "4xlaptop-2g") : fake(gpus) {
        const Outcome listed =
            run({kLaunch, "devices", "--json", "--fake", fake}, plain({"CUDA_DEVICE_ORDER=PCI_BUS_ID"}));
        REQUIRE(listed.exit_code == 0);
        const auto answer = Json::parse(listed.out);
        for (const auto& device : answer["devices"])
            uuids.push_back(device["uuid"]);
    }

    /// The environment of a launcher on this machine.
    Words outside(const Words& more = {}) const { return plain(joined({"CUSLICE_FAKE_DIR=" + books.path()}, more)); }
    Words launch(const Words& options, const Words& program) const {
        return joined(joined(joined({kLaunch, "run", "--fake", fake}, options), {"--"}), program);
    }
    std::unique_ptr<Guest> start(const Words& options, const Words& more = {}, const Words& program = {}) const {
        return std::make_unique<Guest>(launch(options, program.empty() ? Guest::route("linked") : program),
                                       outside(more));
    }
    /// "21": the machine's indices of the GPUs that a guest sees; failed_init() if cuInit failed.
    std::string seen(Guest& guest) const {
        const int started = guest.code("init");
        if (started != kSuccess)
            return failed_init(started);
        std::string indices;
        for (uint64_t i = 0, count = guest.number("count"); i < count; ++i) {
            const std::string uuid = split_words(guest.ask("uuid " + std::to_string(i))).at(1);
            for (size_t k = 0; k < uuids.size(); ++k)
                if (uuids[k] == uuid)
                    indices += std::to_string(k);
        }
        return indices;
    }
    std::string seen(const Words& options, const Words& more = {}) const { return seen(*start(options, more)); }
    /// A launcher that must not start its program: its one line.
    std::string refused(const Words& options, int code, const Words& more = {}) const {
        const Outcome outcome = run(launch(options, {"/bin/echo", "started"}), outside(more));
        CHECK(outcome.exit_code == code);
        CHECK(outcome.out.empty());
        return outcome.err;
    }
    Held held(Guest& guest, size_t index) const { return books_of(books.path(), guest.pid(), uuids.at(index)); }
    Json holders() const {
        const Outcome outcome = run({kLaunch, "ps", "--json", "--fake", fake}, outside());
        REQUIRE(outcome.exit_code == 0);
        return Json::parse(outcome.out)["processes"];
    }

    Folder books;
    std::string fake;
    Words uuids;
};

}  // namespace cuslice::tests
