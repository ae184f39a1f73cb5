// SPDX-License-Identifier: Apache-2.0
// cuslice demo: a program of the installation fills a slice of fake GPUs.
#include <algorithm>
#include <sstream>

#include "tests/preload/machine.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

Outcome demo(const std::string& gpus, const Words& options) {
    const Folder books;
    return run(joined({kLaunch, "demo", "--fake", gpus}, options),
               plain({"CUSLICE_FAKE_DIR=" + books.path(), "LC_ALL=C.UTF-8"}));
}

// Width of a UTF-8 line in columns of a terminal.
size_t columns(const std::string& line) {
    return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

TEST_CASE("demo fills a slice until it is refused, and says so in JSON") {
    const Outcome outcome = demo("1xlaptop-2g", {"--limit", "1GiB", "--json"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.find("cuslice: out of memory on GPU 0") != outcome.err.npos);
    const Json gpus = Json::parse(outcome.out).at("gpus");
    REQUIRE(gpus.size() == 1);
    const Json& gpu = gpus[0];
    CHECK(gpu.at("total") == 1024 * kMiB);
    CHECK(gpu.at("refusal") == "CUDA_ERROR_OUT_OF_MEMORY");
    CHECK(gpu.at("error").is_null());
    const auto allocated = gpu.at("allocated").get<uint64_t>(), block = gpu.at("block").get<uint64_t>();
    const auto free_before = gpu.at("free_before").get<uint64_t>();
    CHECK(allocated == gpu.at("blocks").get<uint64_t>() * block);
    CHECK(allocated <= free_before);
    CHECK(allocated + block > free_before);
}

TEST_CASE("demo draws the GPU, what is visible of it and what was allocated, in 80 columns") {
    const Outcome outcome = demo("1xlaptop-2g", {"--limit", "1GiB"});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.starts_with("GPU 0: NVIDIA GeForce 940MX\n  whole GPU    ███"));
    CHECK(outcome.out.find(" 2002.0 MiB\n  visible      ███") != outcome.out.npos);
    CHECK(outcome.out.find("; the next one: CUDA_ERROR_OUT_OF_MEMORY\n") != outcome.out.npos);
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
        CAPTURE(line);
        CHECK(columns(line) <= 80);
    }
}

TEST_CASE("demo draws each part of a split, and each GPU of several") {
    const Outcome parts = demo("1xlaptop-2g", {"--split", "0=2", "--json"});
    CHECK(parts.exit_code == 0);
    const Json equal = Json::parse(parts.out).at("gpus");
    REQUIRE(equal.size() == 2);
    CHECK(equal[0].at("allocated") == equal[1].at("allocated"));

    const Outcome two = demo("2xt4", {"--limit", "0=1GiB,1=512MiB", "--json"});
    CHECK(two.exit_code == 0);
    const Json gpus = Json::parse(two.out).at("gpus");
    REQUIRE(gpus.size() == 2);
    CHECK(gpus[0].at("total") == 1024 * kMiB);
    CHECK(gpus[1].at("total") == 512 * kMiB);
}

TEST_CASE("demo without settings limits itself, and without a GPU takes a fake one and says so") {
    const Outcome limited = demo("1xt4", {"--json"});
    CHECK(limited.exit_code == 0);
    CHECK(Json::parse(limited.out).at("gpus").at(0).at("total") == 1024 * kMiB);

    const Folder books;
    const Outcome fake = run({kLaunch, "demo", "--json"}, plain({"CUSLICE_FAKE_DIR=" + books.path()}));
    INFO(fake.err);
    if (fake.err.find("as with --fake laptop-2g") == fake.err.npos)
        skip("there is an NVIDIA driver here");
    CHECK(fake.exit_code == 0);
    const Json gpu = Json::parse(fake.out).at("gpus").at(0);
    CHECK(gpu.at("name") == "NVIDIA GeForce 940MX");
    CHECK(gpu.at("total") == 1024 * kMiB);
}

TEST_CASE("demo inside a slice fills that slice") {
    const Folder books;
    const Words words = {kLaunch, "run", "--fake", "1xt4", "--limit", "2GiB", "--", kLaunch, "demo", "--json"};
    const Outcome outcome = run(words, plain({"CUSLICE_FAKE_DIR=" + books.path()}));
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(Json::parse(outcome.out).at("gpus").at(0).at("total") == 2048 * kMiB);
}

}  // namespace cuslice::tests
