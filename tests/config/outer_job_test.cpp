// SPDX-License-Identifier: Apache-2.0
// Limits that the job around a launcher leaves to the job that it starts, over several launchers.
#include "config/outer_job.h"

#include <vector>

#include "config/handover.h"
#include "config/resolve.h"
#include "tests/catch.h"

namespace cuslice {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20, kTotal = 8192 * kMiB;
const GpuIdentity kFirst{0, "GPU-5f10", "00000000:01:00.0"};
const GpuIdentity kSecond{1, "GPU-5f20", "00000000:81:00.0"};

struct Given {
    Key key;
    Rank rank;
    std::string text;
};

// A launcher in a job: what it was handed on (none: empty), what it says itself, and then what is around it.
struct Launcher {
    Launcher(const std::string& handed_on, const std::vector<Given>& own) {
        ConfigError error;
        if (!handed_on.empty())
            REQUIRE(read_handover(settings, handed_on, HandOverPart::without_files, error));
        for (const Given& given : own)
            REQUIRE(add_list(settings, given.key, given.rank, "--" + std::string(traits_of(given.key).name), given.text,
                             error));
        REQUIRE(add_outer_job(settings, !handed_on.empty(), error));
    }
    std::string hand_on() const {
        std::string text(4096, '\0');
        text.resize(write_handover(settings, text));
        return text;
    }
    // "2048 by --limit of the outer job", in MiB.
    std::string may_have(const GpuIdentity& gpu = kFirst) const {
        const Amount amount = amount_for(settings, gpu, kTotal);
        return std::to_string(amount.bytes / kMiB) + " by " + std::string(amount.origin);
    }
    // Limits of the jobs around it, in MiB, the nearest first.
    std::vector<uint64_t> around(const GpuIdentity& gpu = kFirst) const {
        std::vector<uint64_t> limits;
        for (unsigned i = 0; i < 3; ++i)
            limits.push_back(outer_limit_for(settings, i, gpu, kTotal).value_or(0) / kMiB);
        return limits;
    }
    Settings settings;
};

using Limits = std::vector<uint64_t>;
const Rank kFlag{Source::flag, 0}, kVariable{Source::environment, 0}, kUserFile{Source::user_file, 0};

}  // namespace

TEST_CASE("the variables of a job bound what a launcher in it asks for, and it may ask for less") {
    const Given quarter{Key::fraction, kVariable, "0.25"};
    const Launcher more("", {quarter, {Key::limit, kFlag, "3GiB"}});
    CHECK(more.may_have() == "2048 by --fraction of the outer job");
    CHECK(more.around() == Limits{2048, 0, 0});
    const Launcher less("", {quarter, {Key::limit, kFlag, "1GiB"}});
    CHECK(less.may_have() == "1024 by --limit");
    CHECK(less.around() == Limits{2048, 0, 0});
}

TEST_CASE("the limit of a job is the strongest of what it was told, GPU by GPU") {
    const Launcher launcher("", {{Key::limit, kVariable, "1=1GiB"},
                                 {Key::limit, kUserFile, "4GiB,1=2GiB"},
                                 {Key::limit, {Source::current_folder, 0}, "64MiB"},
                                 {Key::limit, {Source::other_tools, 0}, "128MiB"}});
    CHECK(launcher.around(kFirst) == Limits{4096, 0, 0});
    CHECK(launcher.around(kSecond) == Limits{1024, 0, 0});
}

TEST_CASE("each launcher hands on the limits of all jobs around its own") {
    const Launcher first("", {{Key::limit, kVariable, "5GiB"}, {Key::limit, kFlag, "0=3GiB,1=7GiB"}});
    const Launcher second(first.hand_on(), {{Key::limit, kVariable, "5GiB"}, {Key::limit, kFlag, "6GiB"}});
    CHECK(second.may_have() == "3072 by --limit of the outer job");
    CHECK(second.around() == Limits{3072, 5120, 0});
    CHECK(second.may_have(kSecond) == "5120 by --limit of the outer job");
    CHECK(second.around(kSecond) == Limits{7168, 5120, 0});
    Settings program;
    ConfigError error;
    REQUIRE(read_handover(program, second.hand_on(), HandOverPart::all, error));
    CHECK(outer_limit_for(program, 0, kFirst, kTotal) == 3072 * kMiB);
    CHECK(outer_limit_for(program, 1, kFirst, kTotal) == 5120 * kMiB);
    CHECK_FALSE(outer_limit_for(program, 2, kFirst, kTotal));
    CHECK(amount_for(program, kFirst, kTotal).bytes == 3072 * kMiB);
}

TEST_CASE("of many jobs within each other the limits of the nearest and of the two outermost are handed on") {
    std::string handed_on = Launcher("", {{Key::limit, kVariable, "4GiB"}, {Key::limit, kFlag, "3GiB"}}).hand_on();
    for (int depth = 0; depth < 300; ++depth) {
        const std::string own = depth == 298 ? "2GiB" : depth == 150 ? "1GiB" : "5GiB";
        handed_on = Launcher(handed_on, {{Key::limit, kFlag, own}}).hand_on();
        REQUIRE(handed_on.size() < 400);
    }
    Settings program;
    ConfigError error;
    REQUIRE(read_handover(program, handed_on, HandOverPart::all, error));
    CHECK(outer_limit_for(program, 0, kFirst, kTotal) == 2048 * kMiB);
    CHECK(outer_limit_for(program, 1, kFirst, kTotal) == 3072 * kMiB);
    CHECK(outer_limit_for(program, 2, kFirst, kTotal) == 4096 * kMiB);
    CHECK(amount_for(program, kFirst, kTotal).bytes == 2048 * kMiB);
}

TEST_CASE("a variable that is set within a launcher's job is the new job's, and not the outer one's") {
    const Launcher first("", {{Key::limit, kFlag, "4GiB"}});
    const Launcher second(first.hand_on(), {{Key::limit, kVariable, "1GiB"}});
    CHECK(second.around() == Limits{4096, 0, 0});
}

TEST_CASE("a launcher that made no job leaves no limit of one behind") {
    const Launcher first(
        "", {{Key::limit, kVariable, "5GiB"}, {Key::limit, kFlag, "1GiB"}, {Key::per_process, kFlag, "yes"}});
    CHECK(first.around() == Limits{5120, 0, 0});
    const Launcher second(first.hand_on(), {{Key::limit, kVariable, "5GiB"}, {Key::limit, kFlag, "2GiB"}});
    CHECK(second.around() == Limits{5120, 0, 0});
    CHECK(second.may_have() == "2048 by --limit");
}

}  // namespace cuslice
