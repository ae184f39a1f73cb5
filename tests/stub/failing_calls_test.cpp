// SPDX-License-Identifier: Apache-2.0
// Each system call of the stub fails once, in turn: a program that comes to the GPU has its limit or gets no CUDA, and
// one that doesn't runs as it would without the stub.
#include <cerrno>
#include <string>

#include "tests/catch.h"
#include "tests/preload/places.h"
#include "tests/skip.h"
#include "tests/stub/system.h"

namespace cuslice::tests {
namespace {

const std::string kModules = CUSLICE_TEST_MODULES, kOpen = CUSLICE_TEST_OPEN;

Words on_a_gpu(const Folder& books, const std::string& path) {
    return plain({"CUSLICE_FAKE=1xlaptop-2g", "CUSLICE_FAKE_DIR=" + books.path(), "CUSLICE_LIMIT=1024MiB",
                  "LD_LIBRARY_PATH=" + (path.empty() ? path : path + ":") + kFakeFolder});
}

// A program on the same machine, in which one call of the stub's fails.
class Trial {
  public:
    Trial(Words program, std::string path) : program_(std::move(program)), path_(std::move(path)) {}

    bool possible() const { return system_.possible(); }
    Outcome run_failing(int number, int error) const {
        const Folder books;
        Words words{CUSLICE_TEST_FAILING_SYSCALL, std::to_string(number), std::to_string(error), counted()};
        words.insert(words.end(), program_.begin(), program_.end());
        return run(system_.command(words), on_a_gpu(books, path_));
    }
    int calls() const { return std::stoi(read_text(counted())); }
    Outcome run_without() const {
        const Folder books;
        system_.write("etc/ld.so.preload", "");
        return run(system_.command(program_), on_a_gpu(books, path_));
    }

  private:
    std::string counted() const { return folder_.path() + "/calls"; }

    const System system_;
    const Folder folder_;
    const Words program_;
    const std::string path_;
};

constexpr int kErrors[] = {EIO, ENOMEM, EMFILE, EINTR};

}  // namespace

TEST_CASE("a program that opens the driver has its limit or no CUDA, whichever call of the stub fails", "[slow]") {
    struct Way {
        std::string name, path;
    };
    const Way way =
        GENERATE(Way{kModules + "/libstub_module_direct.so", ""}, Way{kModules + "/libstub_module_runpath.so", ""},
                 Way{kModules + "/libstub_module_rpath.so", kModules + "/decoys"},
                 Way{kModules + "/libstub_module_bare.so", kModules + "/below"}, Way{"libcuda.so.1", ""});
    CAPTURE(way.name);
    const Trial trial({kOpen + "plain", way.name}, way.path);
    if (!trial.possible())
        return;
    const Outcome whole = trial.run_failing(0, 0);
    CAPTURE(whole.out, whole.err);
    REQUIRE(whole.out.ends_with("limited\n"));
    const int calls = trial.calls();
    CHECK(calls > 0);
    for (int number = 1; number <= calls; ++number)
        for (const int error : kErrors) {
            const Outcome outcome = trial.run_failing(number, error);
            CAPTURE(number, error, outcome.out, outcome.err);
            CHECK(outcome.exit_code == 0);
            CHECK(outcome.out.find("2048 MiB") == std::string::npos);
            if (!outcome.out.ends_with("limited\n"))
                CHECK(outcome.out.find("refuses CUDA") != std::string::npos);
        }
}

TEST_CASE("a program that comes to no GPU runs as without the stub, whichever of its calls fails", "[slow]") {
    const std::string name = GENERATE(kModules + "/libstub_module_plain.so", std::string("libnot-there.so"));
    CAPTURE(name);
    const Trial trial({kOpen + "plain", name}, "");
    if (!trial.possible())
        return;
    REQUIRE(trial.run_failing(0, 0).exit_code == 0);
    const int calls = trial.calls();
    CHECK(calls > 0);
    std::vector<Outcome> outcomes;
    for (int number = 1; number <= calls; ++number)
        for (const int error : kErrors)
            outcomes.push_back(trial.run_failing(number, error));
    const Outcome without = trial.run_without();
    for (const Outcome& outcome : outcomes) {
        CAPTURE(outcome.out, outcome.err);
        CHECK(outcome.exit_code == without.exit_code);
        CHECK(outcome.out.substr(0, outcome.out.find('\n')) == without.out.substr(0, without.out.find('\n')));
    }
}

TEST_CASE("a program that is linked to the driver has its limit or ends, whichever call of the stub fails", "[slow]") {
    const Trial trial({std::string(CUSLICE_TEST_LINKED) + "now"}, "");
    if (!trial.possible())
        return;
    const std::string limited = "constructor 0 1024\nmain 0 1024\n";
    REQUIRE(trial.run_failing(0, 0).out.starts_with(limited));
    const int calls = trial.calls();
    CHECK(calls > 0);
    for (int number = 1; number <= calls; ++number)
        for (const int error : kErrors) {
            const Outcome outcome = trial.run_failing(number, error);
            CAPTURE(number, error, outcome.out, outcome.err, outcome.exit_code);
            const bool ended = outcome.exit_code == 127 && outcome.out.empty();
            const bool without_gpus = outcome.out.starts_with("constructor 100 0\nmain 100 0\n");
            CHECK((ended || without_gpus || outcome.out.starts_with(limited)));
            if (ended || without_gpus)
                CHECK(outcome.err.starts_with("cuslice: "));
        }
}

}  // namespace cuslice::tests
