// SPDX-License-Identifier: Apache-2.0
// nvidia-smi on machines of fake GPUs.
#include <filesystem>

#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/machine.h"

namespace cuslice::tests {
namespace {

const std::string kPrograms = std::string(CUSLICE_TEST_FAKE_FOLDER) + "/bin";
const Words kCsv{"--format=csv,noheader,nounits"};

Outcome smi(const Machine& machine, const Words& words, const Words& options = {}) {
    return run(machine.launch(options, joined({"nvidia-smi"}, words)), machine.outside());
}

/// The sum of what is used, free and reserved, and the total, for each GPU.
std::vector<std::pair<uint64_t, uint64_t>> sums(const std::string& csv) {
    std::vector<std::pair<uint64_t, uint64_t>> rows;
    std::string text = csv;
    for (char& letter : text)
        letter = letter == ',' ? ' ' : letter;
    const Words numbers = split_words(text);
    for (size_t i = 0; i + 3 < numbers.size(); i += 4)
        rows.emplace_back(std::stoull(numbers[i]) + std::stoull(numbers[i + 1]) + std::stoull(numbers[i + 2]),
                          std::stoull(numbers[i + 3]));
    return rows;
}

}  // namespace

TEST_CASE("nvidia-smi lists a fake machine's GPUs, and scripts read their fields") {
    const Machine machine("2xt4");
    std::string list, fields;
    for (size_t i = 0; i < 2; i++) {
        const std::string index = std::to_string(i);
        list += "GPU " + index + ": Tesla T4 (UUID: " + machine.uuids[i] + ")\n";
        fields += index + ", " + machine.uuids[i] + ", Tesla T4, 7.5\n";
    }
    for (const char* option : {"-L", "--list-gpus"})
        CHECK(smi(machine, {option}).out == list);
    const std::string query = "--query-gpu=index,uuid,name,compute_cap";
    CHECK(smi(machine, {query, "--format=csv,noheader"}).out == fields);
    CHECK(smi(machine, {query, "--format=csv"}).out == "index, uuid, name, compute_cap\n" + fields);
    // A name and its alias; an option's value in the next word; a header has the unit also where the values have none.
    const Outcome total = smi(machine, {"--query-gpu", "gpu_uuid, memory.total", "--format", "csv,nounits", "-i", "1"});
    CHECK(total.out.starts_with("gpu_uuid, memory.total [MiB]\n" + machine.uuids[1] + ", "));
    CHECK(total.out.find("MiB\n", total.out.find('\n') + 1) == std::string::npos);
    for (const std::string& id : {std::string("1"), machine.uuids[1]})
        CHECK(smi(machine, {"-L", "--id=" + id}).out == list.substr(list.find("GPU 1")));
    const Outcome table = smi(machine, {});
    CHECK(table.exit_code == 0);
    for (const char* part : {"Driver Version: ", "CUDA Version: ", "Tesla T4", "MiB / ", "No running processes found"})
        CHECK(table.out.find(part) != std::string::npos);
}

TEST_CASE("nvidia-smi's figures are the fake's and add up, on a GPU and in a slice") {
    const Machine machine("1xt4");
    const auto guest = machine.start({});
    retain_device(*guest);
    REQUIRE(guest->code("alloc a " + std::to_string(100 * kMiB)) == kSuccess);
    const std::string used = std::to_string(machine.held(*guest, 0).used / kMiB);
    const std::string apps = "--query-compute-apps=pid,used_memory,gpu_uuid";
    CHECK(smi(machine, joined({apps}, kCsv)).out ==
          std::to_string(guest->pid()) + ", " + used + ", " + machine.uuids[0] + "\n");
    CHECK(smi(machine, {apps, "--format=csv"}).out.starts_with("pid, used_memory [MiB], gpu_uuid\n"));
    CHECK(smi(machine, {}).out.find(used + "MiB |") != std::string::npos);
    const Words memory = joined({"--query-gpu=memory.used,memory.free,memory.reserved,memory.total"}, kCsv);
    for (const Words& options : std::vector<Words>{{}, {"--limit", "1GiB"}, {"--split", "0=2"}}) {
        const auto rows = sums(smi(machine, memory, options).out);
        REQUIRE(rows.size() == (options.empty() || options[0] == "--limit" ? 1u : 2u));
        // Each figure is cut to whole MiB.
        for (const auto& [parts, total] : rows)
            CHECK((parts <= total && total - parts <= 3));
        if (!options.empty() && options[0] == "--limit")
            CHECK(rows[0].second == 1024);
    }
}

TEST_CASE("what nvidia-smi doesn't have is refused by its name") {
    const Machine machine("1xt4");
    const struct {
        Words words;
        int code;
        std::string said;
    } kMistakes[] = {
        {{"--query-gpu=name,colour", "--format=csv"}, 2, "Field \"colour\" is not a valid field to query."},
        {{"--query-compute-apps=memory.total", "--format=csv"}, 2, "Field \"memory.total\" is not a valid field"},
        {{"--query-gpu=name"}, 2, "a query needs --format=csv"},
        {{"--query-gpu=name", "--format=csv,xml"}, 2, "there is no format xml"},
        {{"-q"}, 2, "there is no option -q"},
        {{"--loop=1"}, 2, "there is no option --loop=1"},
        {{"-L", "-i", "7"}, 6, "No GPU is called 7"},
    };
    for (const auto& mistake : kMistakes) {
        const Outcome outcome = smi(machine, mistake.words);
        CAPTURE(mistake.said);
        CHECK(outcome.exit_code == mistake.code);
        CHECK((outcome.out + outcome.err).find(mistake.said) != std::string::npos);
    }
    for (const char* option : {"-h", "--help", "--help-query-gpu", "--help-query-compute-apps"}) {
        const Outcome help = smi(machine, {option});
        CHECK(help.exit_code == 0);
        CHECK(!help.out.empty());
    }
}

TEST_CASE("nvidia-smi is in PATH where GPUs are fake, once and first, and nowhere else") {
    const Machine machine("1xt4");
    const Words show{"/bin/sh", "-c", "echo $PATH"};
    const Words at{"/usr/bin/env", "PATH=/usr/bin:/bin"};
    const std::string first = kPrograms + ":/usr/bin:/bin\n";
    CHECK(run(joined(at, machine.launch({}, show)), machine.outside()).out == first);
    CHECK(run(joined(at, machine.launch({}, machine.launch({}, show))), machine.outside()).out == first);
    const Words without{kLaunch, "run", "--limit", "1GiB", "--"};
    CHECK(run(joined(at, joined(without, show)), plain()).out == "/usr/bin:/bin\n");
    // Started without a fake machine, nvidia-smi says so.
    const Outcome alone = run({kPrograms + "/nvidia-smi", "-L"}, plain());
    CHECK(alone.exit_code == 9);
    CHECK(alone.out.find("NVML did not start") != std::string::npos);
}

}  // namespace cuslice::tests
