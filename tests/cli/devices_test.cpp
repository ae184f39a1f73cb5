// SPDX-License-Identifier: Apache-2.0
// cuslice devices, on the stub driver.
#include <nlohmann/json.hpp>

#include "config/split/identity.h"
#include "config/split/plan.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

const std::string kFirst = "GPU-50505050-5050-5050-5050-505050505050";
const std::string kSecond = "GPU-51515151-5151-5151-5151-515151515151";

using Json = nlohmann::ordered_json;

Outcome devices(const Words& options, const Words& more = {}) {
    const Folder folder;
    Words words = {kLauncher, "devices"};
    words.insert(words.end(), options.begin(), options.end());
    Words environment = plain_environment(folder.path());
    environment.insert(environment.end(), more.begin(), more.end());
    return run(words, environment);
}

}  // namespace

TEST_CASE("devices lists what a program would see, beside the machine's own GPUs") {
    const Outcome outcome = devices({"--fake=2xstub", "--limit=0=2GiB"});
    CHECK(outcome.err.empty());
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out ==
          "CUDA  INDEX  NAME      UUID                                      PCI\n"
          "0     1      Stub \"1\"  " +
              kSecond +
              "  0000:81:00.0\n"
              "1     0      Stub \"0\"  " +
              kFirst +
              "  0000:80:00.0\n"
              "\n"
              "CUDA  TOTAL     FREE  LIMIT     ALLOCATABLE  FROM\n"
              "0     8192 MiB  ?     2048 MiB  ~1528 MiB    the whole GPU\n"
              "1     8192 MiB  ?     2048 MiB  ~1424 MiB    --limit\n");
}

TEST_CASE("devices inside a slice still tells the machine's own totals") {
    const Folder folder;
    std::vector<std::string> environment = plain_environment(folder.path());
    environment.push_back("LD_LIBRARY_PATH=" + kFakeFolder);
    const Outcome outcome = run({kLauncher, "run", "--limit=2GiB", "--", kLauncher, "devices", "--json"}, environment);
    CHECK(outcome.exit_code == 0);
    const Json device = Json::parse(outcome.out).at("devices").at(1);
    CHECK(device.at("total") == 8589934592);
    CHECK(device.at("limit") == 2147483648);
    CHECK(device.at("origin") == "--limit");
}

TEST_CASE("devices shows the GPU behind a part, and the setting that made it one") {
    std::string digits;
    for (const char character :
         std::string(identity_of_part({1, "GPU-51515151-5151-5151-5151-515151515151", ""}, 1).uuid))
        if (digits.size() < 36 && character != '-')
            digits += character;
    digits.erase(0, 3);  // GPU
    const auto list = [&](const std::string& split) {
        const Outcome outcome = devices({"--json", "--fake=2xstub", "--limit=6GiB", split}, {"STUB_PART=" + digits});
        CHECK(outcome.err.empty());
        return Json::parse(outcome.out).at("devices");
    };
    const Json part = list("--split=1=4GiB+rest").at(0), whole = list("--split=1=4GiB+rest").at(1);
    CHECK(part.at("index") == 1);
    CHECK(part.at("total") == 8589934592);
    CHECK(part.at("limit") == 2147483648);
    CHECK(part.at("origin") == "--split");
    // The only part that is seen is charged all of the context.
    CHECK(part.at("context") == 520 << 20);
    CHECK(part.at("headroom") == 104 << 20);
    CHECK(part.at("left") == (2048 - 624) << 20);
    CHECK(part.at("priority").is_null());
    CHECK(list("--split=1=4GiB+rest:-1").at(0).at("priority") == -1);
    CHECK(list("--split=1=4GiB:-1+rest").at(0).at("priority").is_null());
    CHECK(list("--split=1=4GiB+rest:-1").at(1).at("priority").is_null());
    // The table has a column for them where some part has one.
    const auto table = [&](const std::string& split) {
        return devices({"--fake=2xstub", "--limit=6GiB", split}, {"STUB_PART=" + digits}).out;
    };
    const std::string with_column = table("--split=1=4GiB+rest:-1");
    INFO(with_column);
    CHECK(with_column.find("  PRIORITY  FROM\n") != std::string::npos);
    CHECK(with_column.find("  -1        --split\n") != std::string::npos);
    CHECK(with_column.find("  -         --limit\n") != std::string::npos);
    CHECK(table("--split=1=4GiB:-1+rest").find("PRIORITY") == std::string::npos);
    CHECK(whole.at("index") == 0);
    CHECK(whole.at("origin") == "--limit");
    // Not a part of anything.
    CHECK(list("--split=0=2").at(0).at("index").is_null());
    const Outcome refused = devices({"--fake=2xstub", "--split=0=8GiB+8GiB"});
    CHECK(refused.exit_code == 78);
    CHECK(refused.err ==
          "cuslice: --split: 0=8GiB+8GiB: 16.0 GiB are more than the 8192.0 MiB of GPU 0; --split 0=2 gives equal "
          "partitions, "
          "and --oversubscribe allows it\n");
}

TEST_CASE("devices says where the context comes on top of a limit") {
    const Outcome table = devices({"--fake=2xstub", "--limit=0=2GiB+context"});
    INFO(table.out);
    CHECK(table.out.find("2048 MiB            ~1528 MiB    the whole GPU\n") != std::string::npos);
    CHECK(table.out.find("2048 MiB + context  2048 MiB     --limit\n") != std::string::npos);
    const Json json = Json::parse(devices({"--json", "--fake=2xstub", "--limit=0=2GiB+context"}).out);
    const Json& limited = json["devices"][1];
    CHECK(limited["plus_context"] == true);
    CHECK(limited["headroom"] == 0);
    CHECK(limited["left"] == 2147483648);
}

TEST_CASE("devices --json is for programs") {
    const Outcome outcome = devices({"--json", "--fake=2xstub", "--limit=0=2GiB"});
    CHECK(outcome.exit_code == 0);
    CHECK(Json::parse(outcome.out) ==
          Json::parse("{\"version\": 1, \"devices\": [\n"
                      "  {\"ordinal\": 0, \"index\": 1, \"name\": \"Stub \\\"1\\\"\", \"uuid\": \"" +
                      kSecond +
                      "\", \"pci\": \"0000:81:00.0\", \"total\": 8589934592, \"free\": null, \"limit\": 2147483648, "
                      "\"context\": 545259520, \"context_known\": false, \"plus_context\": false, \"headroom\": 0, "
                      "\"left\": 1602224128, \"priority\": null, "
                      "\"origin\": null},\n"
                      "  {\"ordinal\": 1, \"index\": 0, \"name\": \"Stub \\\"0\\\"\", \"uuid\": \"" +
                      kFirst +
                      "\", \"pci\": \"0000:80:00.0\", \"total\": 8589934592, \"free\": null, \"limit\": 2147483648, "
                      "\"context\": 545259520, \"context_known\": false, \"plus_context\": false, \"headroom\": "
                      "109051904, \"left\": 1493172224, \"priority\": null, "
                      "\"origin\": \"--limit\"}\n"
                      "]}\n"));
}

TEST_CASE("devices without a driver, or without a GPU, says so and exits 69") {
    const Outcome none = devices({"--json", "--driver=/dev/null"});
    CHECK(none.exit_code == 69);
    CHECK(Json::parse(none.out) == Json{{"version", 1}, {"devices", Json::array()}});
    CHECK(none.err == "cuslice: no GPU can be listed: /dev/null: file too short\n");
    const Outcome nowhere = devices({}, {"LD_LIBRARY_PATH=/nonexistent"});
    if (nowhere.exit_code == 69 && nowhere.err.find("libcuda.so.1: cannot open") != nowhere.err.npos)
        CHECK(nowhere.err ==
              "cuslice: no GPU can be listed: no NVIDIA driver here: libcuda.so.1: cannot open shared object file: No "
              "such "
              "file or directory. In a container: start it with its GPUs (docker run --gpus all). On a host: install "
              "NVIDIA's driver package. Without a GPU: --fake 1xt4\n");
    else
        skip("there is a driver here");
    const Outcome empty = devices({"--fake=2xstub"}, {"STUB_NO_DEVICE=1"});
    CHECK(empty.exit_code == 69);
    CHECK(empty.out.empty());
    CHECK(empty.err == "cuslice: no GPU can be listed: cuInit says CUDA_ERROR_NO_DEVICE (100)\n");
}

TEST_CASE("devices refuses a setting for a GPU that is not there") {
    const Outcome outcome = devices({"--fake=2xstub", "--limit=5=2GiB"});
    CHECK(outcome.exit_code == 78);
    CHECK(outcome.err == "cuslice: --limit: 2GiB: '5' names no GPU that is here; there are 2 GPUs: 0 " + kFirst +
                             ", 1 " + kSecond + "\n");
}

}  // namespace cuslice::tests
